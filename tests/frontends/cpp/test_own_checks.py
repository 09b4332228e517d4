"""Mains that compare what their kernels computed, beside mains that end with 0 in any case."""

import pytest

from cubecore.frontends.cpp.host_programs.own_checks import judges_results, says_verdict

PROGRAM = """#include "acl/acl.h"
__global__ __vector__ void add(GM_ADDR x, GM_ADDR z) {{ if (x == z) return; }}
int compared(float* z) {{
  for (int i = 0; i < 8; ++i)
    if (z[i] != 1.0f) return 1;
  return 0;
}}
void require(float* z) {{ if (z[0] != 1.0f) exit(3); }}
int printed(float* z) {{ printf("return 1 %f", z[0]); return 0; }}
std::vector<float> launched(uint8_t* x) {{
  add<<<8, nullptr, nullptr>>>(x, x);
  return std::vector<float>(8);
}}
int main(int argc, char** argv) {{
  if (argc > 2) return 1;
  assert(argc > 0);
{body}
}}
"""
LAUNCH = "  add<<<8, nullptr, stream>>>(x, z);\n"
COMPARES = {
    "a return of a comparison": LAUNCH + "  return z[0] == 1.0f ? 0 : 1;",
    "a return of its number": LAUNCH + "  int wrong = count(z);\n  return wrong;",
    "a return behind a comparison": LAUNCH + "  if (z[0] != 1.0f) return 1;\n  return 0;",
    "a return of a function that compares": LAUNCH + "  return compared(z);",
    "a return of a function of another file": LAUNCH + "  return verify(z);",
    "an exit": LAUNCH + "  if (z[0] != 1.0f) exit(1);\n  return 0;",
    "an exit of a function": LAUNCH + "  require(z);\n  return 0;",
    "an assertion": LAUNCH + "  assert(z[0] == 1.0f);\n  return 0;",
    "an exception": LAUNCH + "  if (z[0] != 1.0f) throw 1;\n  return 0;",
    "a launch in a function": "  auto z = launched(x);\n  return compared(z.data());",
    "a macro that launches": "  ACLRT_LAUNCH_KERNEL(add)(8, stream, x, z);\n  return compared(z);",
}
COMPARES_NOTHING = {
    "a return of 0": LAUNCH + "  return 0;",
    "no return": LAUNCH,
    "a return by name": LAUNCH + "  return EXIT_SUCCESS;",
    "a print": LAUNCH + '  printf("%f", z[0]); // return 1\n  return 0;',
    "a return of a function that prints": LAUNCH + "  return printed(z);",
    "an exit with 0": LAUNCH + "  exit(0);",
    "a status of the runtime": LAUNCH
    + "  if (aclrtSynchronizeStream(stream) != ACL_SUCCESS) {\n    return 1;\n  }\n  return 0;",
    "a status of the runtime without braces": LAUNCH
    + "  if (ret != ACL_SUCCESS) return 1;\n  return 0;",
    "an assertion of a status": LAUNCH + '  assert(ret == ACL_SUCCESS && "sync");\n  return 0;',
    "a launch in a function": "  auto z = launched(x);\n  return 0;",
    "a comparison before the launch": "  if (x[0] != 1) return 1;\n" + LAUNCH + "  return 0;",
}


@pytest.mark.parametrize("name", COMPARES)
def test_a_main_that_may_fail_by_its_results_compares_them(name: str) -> None:
    assert judges_results(PROGRAM.format(body=COMPARES[name]))


@pytest.mark.parametrize("name", COMPARES_NOTHING)
def test_a_main_that_ends_with_0_in_any_case_compares_nothing(name: str) -> None:
    assert not judges_results(PROGRAM.format(body=COMPARES_NOTHING[name]))


VERDICT = """int main() {{
  bool success = compared(z);
  {text}
  return 0;
}}
"""
BRANCHES = (
    'if (success) {{ std::cout << "{0}" << std::endl; }} else {{\n'
    '  std::cout << "{1}" << at << "!" << std::endl; }}'
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BRANCHES.format("Add completed successfully!", "Add failed at "),
         "Add completed successfully!"),
        ('printf("%s\\n", success ? "PASS" : "FAIL");', "x\nPASS"),
        ('const char* s = success ? "OK" : "MISMATCH"; printf("status=%s", s);', "status=OK N=3"),
        ('if (!success) printf("z is wrong\\n"); else printf("passed %d\\n", n);', "passed 7"),
    ],
)  # fmt: skip
def test_a_program_that_prints_the_good_one_of_two_verdicts_has_compared(text, said):
    assert says_verdict(VERDICT.format(text=text), said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('std::cout << "completed successfully" << std::endl;', "completed successfully"),
        ('printf("%s\\n", success ? "PASS" : "FAIL");', "FAIL"),
        ('printf("%s\\n", success ? "PASS" : "FAIL");', "PASSAGE"),
        ('printf("%s\\n", ret == ACL_SUCCESS ? "ok" : "error");', "ok"),
        ('printf("%s\\n", success ? "PASS" : "pass");', "PASS"),
        ('printf("ok\\n"); work(z); printf("failed\\n");', "ok"),
    ],
)
def test_other_words_of_success_are_no_comparison(text, said):
    assert not says_verdict(VERDICT.format(text=text), said)
