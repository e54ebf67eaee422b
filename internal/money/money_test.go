package money

import (
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func said(words string) string {
	var out []string
	for _, a := range Read(words) {
		s := strings.Join(a.Values, "/")
		if a.Percent {
			s += " %"
		}
		if a.Currency != "" {
			s += " " + a.Currency
		}
		if a.One {
			s += " one"
		}
		if a.More {
			s += " more"
		}
		if a.Less {
			s += " less"
		}
		if a.Part {
			s += " part"
		}
		out = append(out, fmt.Sprintf("%s [%s]", s, words[a.Start:a.End]))
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, "; ")
}

// TestCases reads testdata/cases.txt.
func TestCases(t *testing.T) {
	b, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, line := range strings.Split(string(b), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		words, want, _ := strings.Cut(line, " => ")
		n++
		if got := said(words); got != want {
			t.Errorf("line %d: %s\n got %s\nwant %s", i+1, words, got, want)
		}
	}
	if n < 60 {
		t.Errorf("only %d cases", n)
	}
}

// TestReadsBack: what a person writes of a value, in either country's way, with
// or without a currency, is read as that value.
func TestReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1e12).Draw(t, "n")
		comma := rapid.Bool().Draw(t, "comma")
		group, point := ",", "."
		if comma {
			group, point = ".", ","
		}
		whole := fmt.Sprint(n / 100)
		if rapid.Bool().Draw(t, "grouped") {
			for i := len(whole) - 3; i > 0; i -= 3 {
				whole = whole[:i] + group + whole[i:]
			}
		}
		s := fmt.Sprintf("%s%s%02d", whole, point, n%100)
		want := new(big.Rat).SetFrac64(n, 100)
		form := rapid.SampledFrom([]string{"%s", "$%s", "%s €", "EUR %s", "pay %s now", "(%s)", "%s USD.", "%s %%"}).Draw(t, "form")
		got := Read(fmt.Sprintf(form, s))
		if len(got) != 1 || len(got[0].Values) != 1 {
			t.Fatalf("%s: %v", fmt.Sprintf(form, s), got)
		}
		if v, ok := new(big.Rat).SetString(got[0].Values[0]); !ok || v.Cmp(want) != 0 {
			t.Fatalf("%s: %v", s, got)
		}
	})
}

// TestDeriveAgainstModel: the same sum in fractions of whole numbers.
func TestDeriveAgainstModel(t *testing.T) {
	held := 0
	rapid.Check(t, func(t *rapid.T) {
		operand := func(name string) (string, *big.Rat) {
			n, places := rapid.Int64Range(0, 99999).Draw(t, name), rapid.IntRange(0, 3).Draw(t, name+"'s places")
			s := new(big.Rat).SetFrac(big.NewInt(n), power(places)).FloatString(places)
			r, _ := new(big.Rat).SetString(s)
			return s, r
		}
		as, a := operand("a")
		bs, b := operand("b")
		cs, c := operand("c")
		places := rapid.IntRange(0, 3).Draw(t, "places")
		form := rapid.SampledFrom([]Form{Sum, Difference, Product, Percent, PercentPlus}).Draw(t, "form")
		operands, want := []string{as, bs}, new(big.Rat)
		up := func(x *big.Rat) *big.Rat { // a half up, by counting units
			scaled := new(big.Rat).Mul(x, new(big.Rat).SetInt(power(places)))
			n := new(big.Int).Div(new(big.Int).Add(new(big.Int).Mul(scaled.Num(), big.NewInt(2)), scaled.Denom()), new(big.Int).Mul(scaled.Denom(), big.NewInt(2)))
			return new(big.Rat).SetFrac(n, power(places))
		}
		possible := true
		switch form {
		case Sum:
			want.Add(a, b)
		case Difference:
			possible = want.Sub(a, b).Sign() >= 0
		case Product:
			want = up(want.Mul(a, b))
		default:
			want = up(want.Mul(want.Mul(a, b), big.NewRat(1, 100)))
			if form == PercentPlus {
				operands = append(operands, cs)
				possible = up(c).Cmp(c) == 0
				want.Add(want, c)
			}
		}
		d, ok := Derive(form, operands, places, new(big.Rat).Abs(want).FloatString(8))
		if ok != possible {
			t.Fatalf("%s of %v is %s: %v", form, operands, want.FloatString(8), ok)
		}
		if ok {
			held++
			if _, again := Derive(d.Form, d.Operands, d.Places, new(big.Rat).Add(want, big.NewRat(1, 1000)).FloatString(8)); again {
				t.Fatalf("%v holds of another amount too", d)
			}
		}
	})
	if held == 0 {
		t.Error("nothing followed: the property says nothing")
	}
}

func TestDerive(t *testing.T) {
	for _, c := range []struct {
		form     Form
		operands string
		places   int
		want     string
		ok       bool
	}{
		{Sum, "1.10 2.2", 2, "3.30", true}, {Sum, "0.1 0.2", 2, "0.3", true}, {Sum, "0.001 0.001", 2, "0.002", true}, {Sum, "1 2", 2, "4", false},
		{Difference, "12 8", 2, "4", true}, {Difference, "8 12", 2, "4", false}, {Difference, "8 12", 2, "-4", false}, {Difference, "8 8", 2, "0", true},
		{Product, "25.50 150", 2, "3825", true}, {Product, "0.5 0.01", 2, "0.01", true}, {Product, "0.5 0.01", 2, "0.005", false}, {Product, "0.5 0.01", 2, "0", false},
		{Percent, "12.34 10", 2, "1.23", true}, {Percent, "12.34 10", 2, "1.234", false}, {Percent, "0.25 10", 2, "0.03", true}, {Percent, "0.25 10", 2, "0.02", false},
		{Percent, "100 10", 0, "10", true}, {PercentPlus, "100 10 100", 2, "110", true}, {PercentPlus, "100 10 0.001", 2, "10.001", false}, {PercentPlus, "99.99 19 99.99", 2, "118.99", true},
		{Sum, "1", 2, "1", false}, {Sum, "1 2 3", 2, "6", false}, {"a/b", "4 2", 2, "2", false}, {Sum, "1e2 1", 2, "101", false}, {Sum, "01 1", 2, "2", false},
		{Sum, "1 +1", 2, "2", false}, {Sum, "1. 1", 2, "2", false}, {Sum, "1 .5", 2, "1.5", false}, {Sum, "NaN 1", 2, "1", false}, {Sum, "1 1", -1, "2", false},
		{Sum, strings.Repeat("9", 65) + " 1", 2, "1" + strings.Repeat("0", 65), false},
	} {
		d, ok := Derive(c.form, strings.Fields(c.operands), c.places, c.want)
		if ok != c.ok || ok && (d.Form != c.form || strings.Join(d.Operands, " ") != c.operands) {
			t.Errorf("%s of %s is %s: %v %v", c.form, c.operands, c.want, d, ok)
		}
	}
	if d, _ := Derive(Percent, []string{"12.34", "10"}, 2, "1.23"); !d.Rounded {
		t.Error("1.234 is not rounded to 1.23")
	}
	if d, _ := Derive(Percent, []string{"12.30", "10"}, 3, "1.23"); d.Rounded {
		t.Error("1.23 is rounded")
	}
}

func FuzzRead(f *testing.F) {
	f.Add("transfer $1,250.00 and 1.250 € and fifty dollars plus 10 % to file 13")
	f.Fuzz(func(t *testing.T, s string) {
		last := 0
		for _, a := range Read(s) {
			if a.Start < last || a.End <= a.Start || a.End > len(s) || len(a.Values) == 0 || len(a.Values) > 2 || a.Percent && a.Currency != "" {
				t.Fatalf("%q: %+v", s, a)
			}
			last = a.End
			for _, v := range a.Values {
				if x, ok := plain(v); !ok || x.String() != v {
					t.Fatalf("%q: %q", s, v)
				}
			}
		}
	})
}

func FuzzDerive(f *testing.F) {
	f.Add("a*p%+c", "100", "10", "1.5", 2, "11.5")
	f.Fuzz(func(t *testing.T, form, a, b, c string, places int, want string) {
		d, ok := Derive(Form(form), []string{a, b, c}, places, want)
		if !ok {
			d, ok = Derive(Form(form), []string{a, b}, places, want)
		}
		if _, again := Derive(d.Form, d.Operands, d.Places, want); ok && !again {
			t.Fatal("a derivation does not hold again")
		}
	})
}
