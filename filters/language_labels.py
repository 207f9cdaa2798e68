"""What lid.176 calls languages, in ISO 639-3, and the scripts in which each can stand.

The model was trained on Wikipedia, Tatoeba and SETimes (fasttext.cc/docs/en/language-identification.html), so its
labels are Wikipedia's codes. Two-letter ones become their ISO 639-3 equivalent, which for a macrolanguage is the
macrolanguage (`zh` is zho, `ar` is ara, `fa` is fas, `no` is nor): the model does not tell its members apart.
MACROLANGUAGES names the member that people may ask for instead. Five labels are no ISO 639-3 code of their language
and take that of the Wikipedia behind them: als is Alemannic (gsw), bh Bhojpuri (bho), eml Emilian (egl), nah Classical
Nahuatl (nci), sh Serbo-Croatian (hbs).

The scripts are those in common use for the language, not only the one its Wikipedia is written in.
"""

from __future__ import annotations

_SCRIPTS_OF = {
    "Latn": """
        af:afr als:gsw an:arg ast:ast az:aze bar:bar bcl:bcl br:bre bs:bos ca:cat cbk:cbk ceb:ceb co:cos cs:ces cy:cym
        da:dan de:deu diq:diq dsb:dsb eml:egl en:eng eo:epo es:spa et:est eu:eus fi:fin fr:fra frr:frr fy:fry ga:gle
        gd:gla gl:glg gn:grn gom:gom gv:glv hif:hif hr:hrv hsb:hsb ht:hat hu:hun ia:ina id:ind ie:ile ilo:ilo io:ido
        is:isl it:ita jbo:jbo jv:jav kk:kaz ku:kur kw:cor la:lat lb:ltz li:lim lmo:lmo lt:lit lv:lav mg:mlg min:min
        ms:msa mt:mlt mwl:mwl nah:nci nap:nap nds:nds nl:nld nn:nno no:nor oc:oci pam:pam pfl:pfl pl:pol pms:pms pt:por
        qu:que rm:roh ro:ron sc:srd scn:scn sco:sco sh:hbs sk:slk sl:slv so:som sq:sqi sr:srp su:sun sv:swe sw:swa
        tk:tuk tl:tgl tr:tur tt:tat ug:uig uz:uzb vec:vec vep:vep vi:vie vls:vls vo:vol wa:wln war:war yo:yor
        """,
    "Cyrl": """
        av:ava az:aze ba:bak be:bel bg:bul bs:bos bxr:bxr ce:che cv:chv kk:kaz krc:krc ku:kur kv:kom ky:kir lez:lez
        mhr:mhr mk:mkd mn:mon mrj:mrj myv:myv os:oss ro:ron ru:rus rue:rue sah:sah sh:hbs sr:srp tg:tgk tk:tuk tt:tat
        tyv:tyv ug:uig uk:ukr uz:uzb xal:xal
        """,
    "Arab": """
        ar:ara arz:arz az:aze azb:azb ckb:ckb fa:fas kk:kaz ku:kur ky:kir lrc:lrc ms:msa mzn:mzn pnb:pnb ps:pus sd:snd
        tg:tgk ug:uig ur:urd
        """,
    "Deva": "bh:bho dty:dty gom:gom hi:hin hif:hif mai:mai mr:mar ne:nep new:new sa:san sd:snd",
    "Beng": "as:asm bn:ben bpy:bpy",
    "Hani": "ja:jpn wuu:wuu yue:yue zh:zho",
    "Geor": "ka:kat xmf:xmf",
    "Hebr": "he:heb yi:yid",
    "Armn": "hy:hye",
    "Ethi": "am:amh",
    "Grek": "el:ell",
    "Gujr": "gu:guj",
    "Guru": "pa:pan",
    "Hang": "ko:kor",
    "Java": "jv:jav",
    "Jpan": "ja:jpn",
    "Khmr": "km:khm",
    "Knda": "kn:kan",
    "Laoo": "lo:lao",
    "Mlym": "ml:mal",
    "Mong": "mn:mon",
    "Mymr": "my:mya",
    "Orya": "or:ori",
    "Sinh": "si:sin",
    "Taml": "ta:tam",
    "Telu": "te:tel",
    "Thaa": "dv:div",
    "Thai": "th:tha",
    "Tibt": "bo:bod",
}

MACROLANGUAGES = {
    "arb": "ara", "azj": "aze", "cmn": "zho", "ekk": "est", "fil": "tgl", "hrx": "deu", "khk": "mon", "kmr": "kur",
    "lvs": "lav", "nob": "nor", "npi": "nep", "ory": "ori", "pbt": "pus", "pes": "fas", "plt": "mlg", "prs": "fas",
    "quy": "que", "swh": "swa", "uzn": "uzb", "ydd": "yid", "zlm": "msa", "zsm": "msa", "als": "sqi", "gug": "grn",
}  # fmt: skip
"""Codes that other tools use, and the code under which lid.176 gives that language."""

_NAMES = """
ara:arabic ben:bengali bul:bulgarian cat:catalan ces:czech cym:welsh dan:danish deu:german ell:greek eng:english
epo:esperanto est:estonian eus:basque fas:persian fin:finnish fra:french gle:irish glg:galician guj:gujarati heb:hebrew
hin:hindi hrv:croatian hun:hungarian hye:armenian ind:indonesian isl:icelandic ita:italian jpn:japanese kan:kannada
kat:georgian kaz:kazakh khm:khmer kor:korean lat:latin lav:latvian lit:lithuanian mal:malayalam mar:marathi
mkd:macedonian mon:mongolian msa:malay mya:burmese nep:nepali nld:dutch nor:norwegian pan:punjabi pol:polish
por:portuguese pus:pashto ron:romanian rus:russian sin:sinhala slk:slovak slv:slovenian som:somali spa:spanish
sqi:albanian srp:serbian swa:swahili swe:swedish tam:tamil tel:telugu tgl:tagalog tha:thai tur:turkish ukr:ukrainian
urd:urdu uzb:uzbek vie:vietnamese yor:yoruba zho:chinese zul:zulu
"""


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(left, right) for left, _, right in (pair.partition(":") for pair in text.split())]


ISO: dict[str, str] = {label: iso for pairs in _SCRIPTS_OF.values() for label, iso in _pairs(pairs)}
"""lid.176's label -> ISO 639-3."""

_COMMONEST = {"gom": "Deva", "ja": "Jpan", "kk": "Cyrl", "sr": "Cyrl", "tt": "Cyrl", "ug": "Arab"}


def _scripts_of(label: str) -> tuple[str, ...]:
    found = [script for script, pairs in _SCRIPTS_OF.items() if label in dict(_pairs(pairs))]
    return tuple(sorted(found, key=lambda script: script != _COMMONEST.get(label)))


SCRIPTS: dict[str, tuple[str, ...]] = {label: _scripts_of(label) for label in ISO}
"""lid.176's label -> ISO 15924 codes, the commonest first."""

KNOWN: frozenset[str] = frozenset(f"{ISO[label]}_{script}" for label, scripts in SCRIPTS.items() for script in scripts)
"""Every label that the step can give, `und` aside."""


def suggestion(asked: str) -> str | None:
    """The label probably meant by `en`, `eng`, `English`, `cmn_Hans` or `eng_latn`; None where none is near."""
    import difflib

    wanted = asked.strip().replace("-", "_")
    folded = {label.lower(): label for label in sorted(KNOWN)}
    if wanted.lower() in folded:
        return folded[wanted.lower()]
    code, _, script = wanted.lower().partition("_")
    names = {name: iso for iso, name in _pairs(_NAMES)}
    iso = ISO.get(code) or MACROLANGUAGES.get(code) or names.get(code) or code
    usual = {iso: f"{iso}_{SCRIPTS[label][0]}" for label, iso in ISO.items()}
    # `als` is Alemannic to the model, but Tosk Albanian to whoever writes als_Latn.
    if script and code in MACROLANGUAGES:
        iso = MACROLANGUAGES[code]
    if iso in usual:
        return folded.get(f"{iso}_{script}", usual[iso])
    near = [] if script else difflib.get_close_matches(code, list(names), n=1, cutoff=0.75)
    return usual.get(names[near[0]]) if near else None
