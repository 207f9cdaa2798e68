"""Pairs of gold and answer, each with its verdict: of a reference table, and of our own for each rule."""

from __future__ import annotations

import pytest

from synth.verdicts import Outcome
from synth.verifiers import verify

# The published table of math-verify's issues, Qwen's suite and others that the acceptance names; `P` rows are by the
# default policies.
REFERENCE = r"""
7425000 || 7,425,000 || yes
1000.99 || 1000,99 || yes
0.4 || .4 || yes
14916 || \boxed{14{,}916} || yes
12000023 || 12{,}000{,}023 || yes
1e6 || 1000000 || yes
004 || 4 || yes
1/3 || \frac13 || yes
\frac{1}{12} || 0.0833333333333333 || yes
\frac{100}{3} || 33.3 || no
3/2 || 1.5 || yes
1 \pm \sqrt{19} || \{1-\sqrt{19},1+\sqrt{19}\} || yes
\pm 2021 || \{-2021,2021\} || yes
1 - \frac{1}{\mathrm{e}} || 1 + \frac{1}{\mathrm{e}} || no
\frac{1}{2^{99}} || \frac{1}{2^{98}} || no
e^{16} - 1 || -1 + e^{16} || yes
14 - i || 14.0 - 1.0i || yes
\text{13} || 13 || yes
28\% || 0.28 || yes
50\% || 5000 || no
10 || 10\text{ cm} || yes
90^\circ || 90 || yes
12:00 || 1:00 || no
204_5 || 204 || no
1,2,3 || 3,2,1 || yes
1331 \text{ and } 1728 || 1728 || no
[0,1) || [0,1] || no
[0,1) || (0,1) || no
0<f(x)<1 || (0,1) || yes
1<x<2 || 1<x<3 || no
(p,q)=(3,2) || (3,2) || yes
k = 45, n = 2 || \boxed{k = 45} \quad \text{and} \quad \boxed{n = 2} || yes
21,16,11 || 21,16 \text{ or } 11 || yes
D = (0, 1) || D = (0, 1.5) || no
x = 11 || x = 5+5+1 = 7 =11 || yes
x < 1 || -x > -1 || yes
x \geq 5 || 5 \leq x || yes
2x+4y-3=0 || y=-\frac{1}{2}x+\frac{3}{4} || yes
x^2/4 + y^2/3 = 1 || x^2/16 + y^2/12 = 1/4 || yes
F_n = \sum_{k=0}^{n-1} F_k F_{n-k-1} || F_n = \sum_{k=0}^{n-2} F_k F_{n-k-2} || no
\frac{x+2}{7} || \frac{x}{7}+\frac{2}{7} || yes
(x+1)^2 || x^2+2x+1 || yes
\log_2 8 || 3 || yes
\binom{5}{2} || 10 || yes
x+2n+1 || x+1 || no
\ln(e^2) || 2 || yes
\begin{pmatrix}1 & 2 \\ 3 & 4\end{pmatrix} || \begin{pmatrix}1 & 2 \\ 3 & 5\end{pmatrix} || no
\text{Evelyn} || Evelyn || yes
\text{E} || D || no
73 || **73** || yes
3 || \boxed{} || no
42 ||  || no
10^{10^{10}} || 10^{10^{10}} || yes
100000! || 100001! || no
"""

SAME = r"""
96 || The answer is 12 x 8 = 96.
2.74 || 2,74
1000 || 1 000
1000000 || 1\,000\,000
0.111 || 0,111
\frac{-1}{2} || -\frac{1}{2}
\frac{1}{-2} || -0.5
2\frac12 || 2.5
2\frac{1}{2} || \frac52
10^{-3} || 0.001
1.5\times10^3 || 1500
1.5 \cdot 10^{3} || 1500
1e-3 || 0.001
5! || 120
\sqrt{2}/2 || \frac{1}{\sqrt2}
\mathbb{R} || (-\infty,\infty)
x \in \mathbb{R} || (-\infty, +\infty)
0.\overline{3} || 1/3
0.1\overline{6} || \frac16
\lfloor \pi \rfloor || 3
\lceil 2.1 \rceil || 3
\cos 60^\circ || \frac12
\langle 1,2 \rangle || (1,2)
\emptyset || \{\}
x=5 || 5
x=\pm 5 || \{-5, 5\}
5 || x = 5
x=5 \text{ or } x=-5 || \pm 5
x = 5 or x = -5 || -5, 5
y=2x+1 || 2x+1
f(x)=2x || y=2x
3x+2y=6 || y=3-1.5x
120_{4} || 120_4
120_4 || 24
x^{1/2} || \sqrt{x}
\ln 4 || 2\ln 2
3\mathbf{i}+4\mathbf{j} || 3i+4j
\text{no solution} || no solution
\text{No solution} || no solution
2^{10} || 1024
\sqrt[3]{8} || 2
(x+1)(x-1) || x^2-1
\frac{\pi}{4} || 0.7853981633974483
\mathbb{R}\setminus\{1\} || (-\infty,1)\cup(1,\infty)
(-\infty,1)\cup(1,\infty) || x \ne 1
x<1 \text{ or } x>3 || (-\infty,1)\cup(3,\infty)
(-\infty,1)\cup(3,\infty) || x<1, x>3
[1,3] || 1\le x\le 3
[1,3] || x\ge 1, x\le 3
[1,3] || x\ge 1 \text{ and } x\le 3
3:4 || \frac34
3:4 || 6:8
\$18 || 18 dollars
18 || \$18.00
18 || 18 dollars
1,234.5 || 1234.5
12 || 12 apples
12 || \text{12 apples}
12 \text{ cm}^2 || 12 cm^2
12 \text{ cm}^2 || 12\ \mathrm{cm}^{2}
12 || 12 \text{ square meters}
60 || 60 miles per hour
60 \text{ mph} || 60
45 || 45 degrees
45^\circ || 45 \text{ degrees}
\text{(B)} || B
B || \text{(B) } 12
B || (B) 12
B || B. 12
B || The answer is (B).
B || The answer is B
B || **B**
B || **Answer: B**
(5, \infty) || x > 5
\frac{1}{2}x || \frac{x}{2}
x/2 || 0.5x
-x-1 || -(x+1)
\sin 2x || 2\sin x\cos x
\tan x || \frac{\sin x}{\cos x}
e^{\ln 3} || 3
\frac{\sqrt3}{3} || \frac{1}{\sqrt{3}}
4\pi || 12.566370614359172
16\pi \text{ cm}^2 || 16\pi
\frac{3}{4} || 75\%
0.75 || 75\%
75\% || \frac34
75 || 75\%
n^2 || n^{2}
a_n = 2n+1 || 2n+1
2n+1 || a_n=2n+1
2^n - 1 || 2^{n}-1
\frac{n(n+1)}{2} || \frac{n^2+n}{2}
\binom{n}{2} || \frac{n(n-1)}{2}
\sum_{k=1}^{10} k || 55
\sum_{k=1}^{n} k || \frac{n(n+1)}{2}
\{(1,2),(3,4)\} || (3,4),(1,2)
(1,2),(3,4) || (1,2) \text{ and } (3,4)
\left(\frac12, -3\right) || (0.5,-3)
\begin{pmatrix}1\\2\end{pmatrix} || (1,2)
\begin{bmatrix}1&2\\3&4\end{bmatrix} || \begin{pmatrix}1&2\\3&4\end{pmatrix}
42 || The final answer is $\boxed{42}$.
42 || <think>maybe 41</think> 42
42 || Let me see. The answer is 42.
42 || **Final Answer:** 42
42 || Final answer: \(42\)
42 || So we get 6 times 7 = 42
42 || ### 42
42 || #### 42
42 || \[ \boxed{42} \]
42 || \boxed{\text{42}}
42 || \boxed{42.}
42 || \boxed{ 42\text{ dollars} }
42 || \boxed{x=42}
1/2 || \boxed{\frac12}
3/4 || \boxed{\dfrac{3}{4}}
1 + 2i || 2i+1
x^2+y^2=1 || y^2+x^2-1=0
x \equiv 3 \pmod 7 || 3 \pmod{7}
\frac{1}{x} || x^{-1}
x\sqrt{x} || x^{3/2}
\{1,2,3\} || 1,2,3
1, 2, 3 || 1, 2 and 3
10 || 10.000
\frac{9}{2} || 4\frac{1}{2}
3 + 2\sqrt{2} || (1+\sqrt2)^2
p-q || -(q-p)
\frac{a+b}{c} || (a+b)/c
2x || 2 \cdot x
2\cdot 3^n || 2*3^n
log_2(8) || 3
sqrt(2) || \sqrt{2}
1/sqrt(2) || \frac{\sqrt{2}}{2}
pi/4 || \frac{\pi}{4}
x>2 || 2<x
x \in (2, \infty) || x>2
7 || \boxed{7} \text{ ways}
\text{Yes} || yes
True || true
12:30 || 12:30
10:30 \text{ a.m.} || 10:30 am
July 4 || \text{July 4}
\text{Sunday} || It is Sunday. The answer is Sunday.
\frac{1}{3} || 0.3333333333
\frac{2}{3} || 0.6666666667
\sqrt{2} || 1.4142135623730951
1.4142135623730951 || \sqrt{2}
100,000 || 10^5
5.0 \times 10^{-2} || 0.05
\left\{ -2, 3 \right\} || x=-2, x=3
x=-2, x=3 || -2, 3
(2,3) || x=2, y=3
x=2, y=3 || y=3, x=2
2/3 || $\frac{2}{3}$
\frac{\sqrt{5}-1}{2} || \frac{-1+\sqrt{5}}{2}
y = x^2 || x^2
z=2 || 2
\angle ABC = 30^\circ || 30
P(A)=\frac12 || 0.5
AB = 5 || 5
5 || AB=5
\overline{AB}=5 || 5
\triangle ABC || \triangle ABC
1\,000 || 1000
2^{1000}\cdot 3 || 3\cdot 2^{1000}
12!/2 || 239500800
|x-3| || |3-x|
-\infty || -\infty
\text{increasing} || increasing
\text{ellipse} || \text{an ellipse}
\frac{dy}{dx}=2x || 2x
f'(x) = 2x || 2x
f^{-1}(x)=x+1 || x+1
\int 2x dx || \int 2x dx
x^2 + C || x^2+C
1.0 || 1
9\% || 9 percent
7 \text{ and } 9 || 9, 7
7\text{ and }9 || 7 and 9
\boxed{7} || 7
$\frac{1}{2}$ || 1/2
a=1,b=2 || (1,2)
a=1,b=2 || b=2,a=1
(a,b)=(1,2) || a=1,b=2
3 \text{ hours and } 20 \text{ minutes} || 3 hours and 20 minutes
2,4,8 || 2, 4, 8
[0, 1] \cup [2,3] || [2,3] \cup [0,1]
k \le -2 || (-\infty, -2]
\frac{1}{2} < x < 2 || (0.5, 2)
0 < x \leq 1 || (0,1]
1 \le x < 2 || [1,2)
\sqrt{50} || 5\sqrt2
5^{1/3} || \sqrt[3]{5}
\exp(2) || e^2
\log_{10} 1000 || 3
\max(2,3) || 3
\gcd(12,18) || 6
\cot x || 1/\tan x
\sec^2 x - 1 || \tan^2 x
\arcsin 1 || \frac\pi2
\sin^{-1}(1) || \pi/2
\frac{1}{1+x}+\frac{1}{1-x} || \frac{2}{1-x^2}
2\pi r || 2r\pi
\frac{4}{3}\pi r^3 || \frac{4\pi r^3}{3}
3.5\text{ million} || 3.5 million
0.3 || 0.30000000000000004
2x+4=0 || x=-2
10 \text{ m} || 10
20 || 20^\circ C
\$18 || 18 dollars
1 || \int_0^1 2x dx
\frac{\pi^2}{6} || \sum_{k=1}^{\infty} \frac{1}{k^2}
0.5 || 0,5
x<3 || x<3, x<4
"""

OTHER = r"""
96 || 12 x 8 = 97
96 || 12x
1+\frac1e || 1-\frac1e
2.74 || 2,75
1000 || 100
\frac{1}{3} || 0.33
\frac{1}{3} || 0.3334
\frac23 || 0.67
x=5 || 6
\pm 5 || 5
5 || \pm 5
\{1,2\} || 1
\{1,2\} || \{1,2,3\}
1,2 || 2
2 || 1,2
(1,2) || (2,1)
[1,2) || (1,2]
[1,2] || [1,2)
x<1 || x>1
x \le 1 || x < 1
(0,1) || 0 \le x \le 1
x^2 || x
\sqrt{x^2} || x
|x| || x
x+1 || x-1
\frac{x}{y} || \frac{y}{x}
y=2x || y=3x
y=2x || x=2y
x=3 || y=3
3x+2y=6 || 3x+2y=7
3x+2y=6 || 6
6 || 3x+2y=6
10^{10} || 10^{11}
10 \text{ cm} || 10 \text{ m}
10 \text{ cm} || 10 \text{ km}
50\% || 50.5\%
0.5 || 5\%
5 || 0.5\%
0.28 || 28
B || C
B || \text{(C) } 12
\text{BCA} || ABC
\text{Yes} || No
\text{increasing} || decreasing
204_5 || 204_6
12_3 || 12
a_1=2,a_2=3 || a_1=3,a_2=2
x=1,y=2 || x=2,y=1
x=1,y=2 || 2,1
(1,2),(3,4) || (1,2)
(1,2),(3,4) || (1,4),(3,2)
\begin{pmatrix}1&2\\3&4\end{pmatrix} || \begin{pmatrix}1&3\\2&4\end{pmatrix}
\begin{pmatrix}1&2\end{pmatrix} || \begin{pmatrix}1\\2\end{pmatrix}
\mathbb{R} || (0,\infty)
\emptyset || \{0\}
2i || -2i
1+i || 1
e || 2.718
\pi || 3.14
\pi || 22/7
3.14 || \pi
\frac{\pi}{4} || 0.785
\sin x || \cos x
2^{100} || 2^{100}+1
10^{50} || 10^{50}+1
10^{50}\sqrt2 || 10^{50}\sqrt2+1
1.0000001 || 1
1 || 1.0000001
1000000000000000001 || 1000000000000000000
1e-20 || 0
0 || 1e-20
1e6 || 1e7
7 || 77
7 || 7x
x || y
x || X
7 || seven 8
\sum_{k=1}^{10} k || 54
\int 2x dx || \int 3x dx
x^2+C || x^2
3:4 || 4:3
3:4 || 3
12:30 || 12:31
10:30 am || 10:30 pm
42 || <think>42</think>
42 || <think>42
42 || \boxed{41} no wait
42 || \boxed{42}, no: \boxed{43}
42 || \boxed{42} is wrong; the answer is \boxed{43}
42 || \boxed{4
42 || \boxed{}
42 || The answer is not here
42 || \boxed{42 or 43}
42 || \boxed{42, 43}
42 || 4 2
1/2 || 1
1/2 || 2
1/2 || 12
\frac{1}{23} || \frac{12}{3}
x^{23} || x^2 3
2^{3x} || 2^3x
-2^2 || 4
\sqrt{2}3 || \sqrt{23}
1{,}234 || 1.234
a+b || ab
\ln x || \log_{10} x
\sin^{-1} x || \frac{1}{\sin x}
n || n+1
\frac{n(n+1)}{2} || \frac{n(n-1)}{2}
F_n || F_{n-1}
f(x) || f(y)
f(x+1) || f(x)
x=2 \text{ or } x=3 || x=2
2 \text{ or } 3 || 2
x \ne 1 || x \ne 2
x > 1 || x \ne 1
\text{12 apples} || 13 apples
\{1,2\} || (1,2)
-3 || 3
0 || 1
0 || x
\text{odd} || even
90^\circ || 91
(0,1) || (0,1.5)
2 || two or three
(-\infty, 2] || (-\infty, 2)
9999999 || 9999998
1 || \frac{\sin x}{x}
4 || 2^2+1
6 || 3! + 1
120 || 5!!
\text{E} || e
I || 1
1 || l
O || 0
1,2,3,4 || 1,2,3
1,1,2 || 1,2
July 4 || July 5
\frac{a}{b} || a-b
x_1 || x_2
\alpha || \beta
10 || 1010_2 + 1
a_3=2, a_{37}=19 || a_3=2, a_{38}=19
V_1:V_2=11:21 || V_1:V_3=11:21
f(2)=5 || f(3)=5
3 \pmod{7} || 3 \pmod{6}
(B) 12 || (B) 13
0.3 || 0.30000000000000204
156 || 12 13
5 || 5+
5 || 5 or more
5 || at least 5
5 || not 5
\$18 || 18 cents
18 cents || \$18
7 || \int_0^1 2x dx
32349 || 32, 349
0.1 || (0,1)
\{0,1\} || 0.1
0,1 || 0.1
1.2 || 1,2
x<3 || y<3
3400 || (3,400)
0.6 || 0.1\overline{6}
9 ||
7 || \boxed{7}, not \boxed{8}
"""


def pairs(table: str) -> list[list[str]]:
    return [[part.strip() for part in line.split(" ||")] for line in table.strip().splitlines()]


@pytest.mark.parametrize(("gold", "answer", "equal"), pairs(REFERENCE))
def test_each_pair_of_the_reference_table_has_its_verdict(gold: str, answer: str, equal: str) -> None:
    verdict = verify("math", gold, answer)
    assert verdict.outcome == (Outcome.RIGHT if equal == "yes" else Outcome.WRONG), verdict.reason


@pytest.mark.parametrize(("gold", "answer"), pairs(SAME))
def test_what_is_the_same_is_right(gold: str, answer: str) -> None:
    assert verify("math", gold, answer).outcome is Outcome.RIGHT


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\sqrt{2}", r"\frac{2\sqrt{2}}{2}+10^{-200}"),
        (r"10^{4000}\sqrt{2}", r"(10^{2000})^2\sqrt{2}+1"),
        ("3", r"2^{2^{2^{2^{2^2}}}}"),
    ],
)
def test_what_is_beyond_the_digits_that_are_compared_is_an_error_and_never_right(gold: str, answer: str) -> None:
    assert verify("math", gold, answer).outcome is not Outcome.RIGHT


def test_signs_of_unicode_are_those_of_latex() -> None:
    assert verify("math", "-3", "\u22123").outcome is Outcome.RIGHT
    assert verify("math", r"2\pi", "2\u03c0").outcome is Outcome.RIGHT
    assert verify("math", r"x \le 3", "x \u2265 3").outcome is Outcome.WRONG


@pytest.mark.parametrize(("gold", "answer"), pairs(OTHER))
def test_what_is_another_answer_is_not_right(gold: str, answer: str) -> None:
    assert verify("math", gold, answer).outcome is Outcome.WRONG


@pytest.mark.parametrize(("gold", "answer"), [pair for pair in pairs(SAME) + pairs(OTHER) if "42" not in pair[0]])
def test_which_of_the_two_is_the_gold_changes_nothing_but_for_what_only_an_answer_may(gold: str, answer: str) -> None:
    """An answer may find a solution twice, and may write one decimal behind a comma; a gold that is no formula is an
    error, an answer that is none is wrong."""
    only_answers = {("0.5", "0,5"), ("0,1", "0.1"), ("1,1,2", "1,2")}
    if (gold, answer) in only_answers or not answer:
        return
    turned = verify("math", answer, gold)
    assert (turned.outcome is Outcome.RIGHT) == (verify("math", gold, answer).outcome is Outcome.RIGHT)
