package money

import (
	"cmp"
	"math/big"
	"slices"
)

// Forms are all forms.
var Forms = []Form{Sum, Difference, Product, Percent, PercentPlus}

// Round is the form of an amount that is another one rounded, as Rounded does it. It
// has one operand, and is not for Derive and Solve.
const Round Form = "round(a)"

// Rounded returns the amounts that people make of one with many places: rounded to
// two, to one and to none, a half up, each where it is another. Not of what is below
// zero.
func Rounded(value string) (out []string) {
	x, ok := plain(value)
	if !ok {
		return nil
	}
	for places := 2; places >= 0; places-- {
		if r := x.round(places); !r.equals(x) {
			out = append(out, r.String())
		}
	}
	return slices.Compact(out)
}

// maxSolutions bounds what Solve returns: of a small percentage very many amounts
// give one that is rounded.
const maxSolutions = 64

// Solve returns the numbers with which, and with one that is said, an amount follows
// by a form: both a and b of a difference, the a of a product and of a percentage
// that is said. With a percentage c is a. All of them pass Derive; where they are
// more than 64 there are none.
func Solve(form Form, said string, percent bool, places int, want string) (out []string) {
	x, ok1 := plain(said)
	w, ok2 := plain(want)
	if !ok1 || !ok2 || percent != (form == Percent || form == PercentPlus) || places < 0 || places > maxDigits {
		return nil
	}
	try := func(v fixed, operands ...string) {
		if v.digits.Sign() < 0 {
			return
		}
		s := v.String()
		for i, o := range operands {
			operands[i] = cmp.Or(o, s)
		}
		if _, ok := Derive(form, operands, places, want); ok && (len(out) == 0 || out[len(out)-1] != s) {
			out = append(out, s)
		}
	}
	switch form {
	case Sum:
		try(w.plus(x, true), said, "")
	case Difference:
		try(x.plus(w, true), said, "")
		try(w.plus(x, false), "", said)
	case Product, Percent, PercentPlus:
		operands := []string{"", said}
		if form == PercentPlus {
			operands = append(operands, "")
		}
		for _, v := range nearby(form, x, w, places) {
			try(v, slices.Clone(operands)...)
		}
	}
	if len(out) > maxSolutions {
		return nil
	}
	return out
}

// nearby are the numbers, of so many places, that with another one can give an amount by a form
// that multiplies: none where they are too many.
func nearby(form Form, by, want fixed, places int) (out []fixed) {
	factor := new(big.Rat).SetFrac(by.digits, power(by.places))
	if form != Product {
		factor.Quo(factor, big.NewRat(100, 1))
	}
	if form == PercentPlus {
		factor.Add(factor, big.NewRat(1, 1))
	}
	if factor.Sign() == 0 {
		return nil
	}
	unit := new(big.Rat).SetFrac(big.NewInt(1), power(places))
	exact := new(big.Rat).Quo(new(big.Rat).SetFrac(want.digits, power(want.places)), factor)
	// Rounding moved the amount by half a unit at most.
	steps := new(big.Rat).Inv(factor)
	if steps.Cmp(big.NewRat(maxSolutions, 1)) > 0 {
		return nil
	}
	at := new(big.Rat).Quo(exact, unit)
	mid := new(big.Int).Quo(at.Num(), at.Denom())
	n, _ := steps.Float64()
	for d := -int64(n) - 1; d <= int64(n)+1; d++ {
		out = append(out, fixed{new(big.Int).Add(mid, big.NewInt(d)), places})
	}
	return out
}
