package money

import (
	"math/big"
	"slices"
	"strings"
)

// fixed is a decimal number: digits, of which the last places stand behind the
// point.
type fixed struct {
	digits *big.Int
	places int
}

func number(n int64, places int) fixed { return fixed{big.NewInt(n), places} }

// parse reads digits, the last places of which stand behind the point.
func parse(digits string, places int) fixed {
	n, _ := new(big.Int).SetString(digits, 10)
	return fixed{n, places}
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// to returns the digits of x with more places.
func (x fixed) to(places int) *big.Int { return new(big.Int).Mul(x.digits, power(places-x.places)) }

func (x fixed) shift(n int) fixed {
	if n > x.places {
		return fixed{new(big.Int).Mul(x.digits, power(n-x.places)), 0}
	}
	return fixed{x.digits, x.places - n}
}

func (x fixed) plus(y fixed, minus bool) fixed {
	p := max(x.places, y.places)
	if minus {
		return fixed{new(big.Int).Sub(x.to(p), y.to(p)), p}
	}
	return fixed{new(big.Int).Add(x.to(p), y.to(p)), p}
}

func (x fixed) times(y fixed) fixed {
	return fixed{new(big.Int).Mul(x.digits, y.digits), x.places + y.places}
}

func (x fixed) equals(y fixed) bool { return x.plus(y, true).digits.Sign() == 0 }

// round is to places, a half up. x is not negative.
func (x fixed) round(places int) fixed {
	if x.places <= places {
		return x
	}
	unit := power(x.places - places)
	n := new(big.Int).Add(x.digits, new(big.Int).Rsh(unit, 1))
	return fixed{n.Div(n, unit), places}
}

// String is the one spelling of a value: no zeros that say nothing.
func (x fixed) String() string {
	s := x.digits.String()
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	if x.places >= len(s) {
		s = strings.Repeat("0", x.places-len(s)+1) + s
	}
	whole, part := s[:len(s)-x.places], strings.TrimRight(s[len(s)-x.places:], "0")
	if part != "" {
		part = "." + part
	}
	return sign + whole + part
}

// plain reads a number as String writes it, zeros behind the point allowed.
func plain(s string) (fixed, bool) {
	whole, part, point := strings.Cut(s, ".")
	if whole == "" || point && part == "" || len(s) > maxPlain || strings.Trim(whole+part, "0123456789") != "" || len(whole) > 1 && whole[0] == '0' {
		return fixed{}, false
	}
	return parse(whole+part, len(part)), true
}

const maxPlain = 64 // characters of an operand

// Form is how an amount follows from others (R11).
type Form string

// The forms, and no others.
const (
	Sum         Form = "a+b"
	Difference  Form = "a-b"
	Product     Form = "a*b"
	Percent     Form = "a*p%"
	PercentPlus Form = "a*p%+c" // with c = a it is "a plus p %"
)

// Derivation is a computation that gives an amount: whoever has it can repeat it.
type Derivation struct {
	Form     Form
	Operands []string // in the order of the form's letters: a, b or a, p, c
	Places   int
	Rounded  bool // the exact result has more places
}

// Derive reports whether an amount follows from operands by a form, and how.
// Sums and differences are exact. What is multiplied is rounded to places, a half
// up, and then only the rounded amount follows: nobody can pay the other. There
// is one way to round, not two, so that one computation has one result: a half
// up is the way of shops, invoices and of Regulation (EC) 1103/97. A percentage
// is rounded before c is added, which for a c of at most so many places is the
// same; with one of more nothing follows, nor does what is below zero. Operands
// and the amount are plain decimal numbers, of at most 64 characters.
func Derive(form Form, operands []string, places int, want string) (d Derivation, ok bool) {
	count := map[Form]int{Sum: 2, Difference: 2, Product: 2, Percent: 2, PercentPlus: 3}[form]
	target, ok := plain(want) // so never below zero
	if !ok || count == 0 || len(operands) != count || places < 0 || places > maxDigits {
		return Derivation{}, false
	}
	x := make([]fixed, 3)
	for i, o := range operands {
		if x[i], ok = plain(o); !ok {
			return Derivation{}, false
		}
	}
	var exact, result fixed
	switch form {
	case Sum, Difference:
		exact = x[0].plus(x[1], form == Difference)
		result = exact
	default:
		exact = x[0].times(x[1])
		if form != Product {
			exact.places += 2
		}
		result = exact.round(places)
	}
	d = Derivation{form, slices.Clone(operands), places, !result.equals(exact)}
	if form == PercentPlus {
		if !x[2].round(places).equals(x[2]) {
			return Derivation{}, false
		}
		result = result.plus(x[2], false)
	}
	if !result.equals(target) {
		return Derivation{}, false
	}
	return d, true
}
