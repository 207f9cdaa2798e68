"""Writes language_scripts.npz: the script and case of each letter. Run once a Unicode version:
`python -m filters.language_make_scripts`.

Answers must not depend on the Python that runs them, so the table is stored in the package.
Source: the Unicode Character Database as the `regex` package carries it; script codes are ISO 15924.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from filters.language_kernels import LOWER, UPPER

_CODES = """
Adlm Aghb Ahom Arab Armi Armn Avst Bali Bamu Bass Batk Beng Bhks Bopo Brah Brai Bugi Buhd Cakm Cans Cari Cham Cher Chrs
Copt Cpmn Cprt Cyrl Deva Diak Dogr Dsrt Dupl Egyp Elba Elym Ethi Gara Geor Glag Gong Gonm Goth Gran Grek Gujr Gukh Guru
Hang Hani Hano Hatr Hebr Hira Hluw Hmng Hmnp Hung Ital Java Kali Kana Kawi Khar Khmr Khoj Kits Knda Krai Kthi Lana Laoo
Latn Lepc Limb Lina Linb Lisu Lyci Lydi Mahj Maka Mand Mani Marc Medf Mend Merc Mero Mlym Modi Mong Mroo Mtei Mult Mymr
Nagm Nand Narb Nbat Newa Nkoo Nshu Ogam Olck Onao Orkh Orya Osge Osma Ougr Palm Pauc Perm Phag Phli Phlp Phnx Plrd Prti
Rjng Rohg Runr Samr Sarb Saur Sgnw Shaw Shrd Sidd Sind Sinh Sogd Sogo Sora Soyo Sund Sunu Sylo Syrc Tagb Takr Tale Talu
Taml Tang Tavt Telu Tfng Tglg Thaa Thai Tibt Tirh Tnsa Todr Toto Tutg Ugar Vaii Vith Wara Wcho Xpeo Xsux Yezi Yiii Zanb
"""
CODES = _CODES.split()
KANA = {"Hira", "Kana"}  # both are written in one text, which ISO 15924 calls Jpan


def build() -> dict[str, npt.NDArray[Any]]:
    import regex  # type: ignore[import-untyped]

    names = ["Zyyy", "Jpan", *(code for code in CODES if code not in KANA)]
    every = "".join(map(chr, (p for p in range(0x110000) if not 0xD800 <= p < 0xE000)))
    scripts = np.zeros(0x110000, np.uint8)
    cases = np.zeros(0x110000, np.uint8)
    for code in CODES:
        number = names.index("Jpan" if code in KANA else code)
        for letter in regex.finditer(rf"[\p{{Script={code}}}&&\p{{L}}]", every, regex.V1):
            scripts[ord(letter[0])] = number
    for case, name in ((UPPER, "Lu"), (UPPER, "Lt"), (LOWER, "Ll")):
        for letter in regex.finditer(rf"\p{{{name}}}", every):
            cases[ord(letter[0])] = case
    return {"scripts": scripts, "cases": cases, "names": np.array(names, "S4")}


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("language_scripts.npz"), allow_pickle=False, **build())
