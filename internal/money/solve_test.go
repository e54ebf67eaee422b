package money

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSolve: what gives an amount is found from the amount, and what is found
// gives it.
func TestSolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		form := rapid.SampledFrom(Forms).Draw(t, "form")
		cents := func(name string, most int) string {
			n := rapid.IntRange(1, most).Draw(t, name)
			return fixed{number(int64(n), 0).digits, 2}.String()
		}
		a, said := cents("a", 1_000_00), cents("said", 200_00)
		operands := []string{a, said}
		percent := form == Percent || form == PercentPlus
		if percent {
			said = fmt.Sprint(rapid.IntRange(2, 100).Draw(t, "p"))
			operands[1] = said
		}
		if form == PercentPlus {
			operands = append(operands, a)
		}
		want := ""
		for _, w := range candidates(form, operands) {
			if _, ok := Derive(form, operands, 2, w); ok {
				want = w
			}
		}
		if want == "" {
			return
		}
		got := Solve(form, said, percent, 2, want)
		if !slices.Contains(got, a) && form != Product {
			t.Fatalf("%s of %s and %s is %s: found %v", form, a, said, want, got)
		}
		for _, v := range got {
			with := slices.Clone(operands)
			with[0] = v
			if form == PercentPlus {
				with[2] = v
			}
			_, one := Derive(form, with, 2, want)
			_, two := Derive(form, []string{said, v}, 2, want)
			if !one && !(form == Difference && two) {
				t.Fatalf("%s with %s gives no %s", form, v, want)
			}
		}
	})
}

// candidates are what a form may give, found by trying.
func candidates(form Form, operands []string) (out []string) {
	a, _ := plain(operands[0])
	b, _ := plain(operands[1])
	switch form {
	case Sum:
		out = append(out, a.plus(b, false).String())
	case Difference:
		out = append(out, a.plus(b, true).String())
	case Product:
		out = append(out, a.times(b).round(2).String())
	case Percent:
		out = append(out, a.times(b).shift(-2).round(2).String())
	case PercentPlus:
		out = append(out, a.times(b).shift(-2).round(2).plus(a, false).String())
	}
	return out
}

func TestRounded(t *testing.T) {
	for value, want := range map[string][]string{
		"10.038536": {"10.04", "10"}, "10.5": {"11"}, "2.6449": {"2.64", "2.6", "3"}, "0.004": {"0"}, "12": nil, "12.30": {"12"}, "-1.5": nil, "1e2": nil, "": nil,
		"99.995": {"100"}, "0.125": {"0.13", "0.1", "0"},
	} {
		if got := Rounded(value); !slices.Equal(got, want) {
			t.Errorf("%q rounds to %q, want %q", value, got, want)
		}
	}
}
