package provenance

import (
	"strconv"
	"strings"
)

// The bounds of a number literal (attack W16): they bound the expansion of
// an exponent too.
const (
	maxNumber   = 64
	maxExponent = 400
)

// decimal returns the exact fixed-point spelling of a JSON number literal: no
// exponent, no leading zeros, no trailing zeros after the point, no negative
// zero. It moves digits and computes nothing, so nothing is rounded.
func decimal(lit string) (string, bool) {
	if len(lit) == 0 || len(lit) > maxNumber {
		return "", false
	}
	rest, neg := strings.CutPrefix(lit, "-")
	mant, exp := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		e := rest[i+1:]
		if e == "" || strings.Trim(strings.TrimLeft(e[:1], "+-")+e[1:], "0123456789") != "" {
			return "", false
		}
		n, err := strconv.Atoi(e)
		if err != nil || n > maxExponent || n < -maxExponent {
			return "", false
		}
		mant, exp = rest[:i], n
	}
	whole, frac, point := strings.Cut(mant, ".")
	if !digits(whole) || point && !digits(frac) || len(whole) > 1 && whole[0] == '0' {
		return "", false
	}
	all := whole + frac
	at := len(whole) + exp // where the point stands in all
	if at < 0 {
		all, at = strings.Repeat("0", -at)+all, 0
	}
	if at > len(all) {
		all += strings.Repeat("0", at-len(all))
	}
	whole, frac = strings.TrimLeft(all[:at], "0"), strings.TrimRight(all[at:], "0")
	if whole == "" {
		whole = "0"
	}
	out := whole
	if frac != "" {
		out += "." + frac
	}
	if neg && out != "0" {
		out = "-" + out
	}
	return out, true
}

// digits reports whether s is one or more ASCII digits.
func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
