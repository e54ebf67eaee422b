package memory

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"sync"
)

// Micro is a number in millionths. Every score, weight and threshold is one, so
// that two machines never disagree about a comparison: what a processor makes
// of the last bit of a float64 is neither stored, nor hashed, nor compared.
type Micro int64

// One is 1.000000.
const One Micro = 1_000_000

// String returns the shortest decimal: "0.78", "1", "-0.000001".
func (m Micro) String() string {
	sign, u := "", uint64(m)
	if m < 0 {
		sign, u = "-", -u
	}
	s := sign + strconv.FormatUint(u/uint64(One), 10)
	if f := u % uint64(One); f != 0 {
		d := strconv.FormatUint(uint64(One)+f, 10)[1:]
		s += "." + strings.TrimRight(d, "0")
	}
	return s
}

// MarshalJSON writes the number as String does.
func (m Micro) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON accepts exactly what MarshalJSON writes.
func (m *Micro) UnmarshalJSON(b []byte) error {
	v, err := parseMicro(string(b))
	if err == nil && v.String() != string(b) {
		err = errMicro
	}
	if err == nil {
		*m = v
	}
	return err
}

var errMicro = errors.New("memory: a number with at most 6 decimal places is expected")

// parseMicro reads a decimal with at most six decimal places and nine digits
// before them.
func parseMicro(s string) (Micro, error) {
	t, neg := strings.CutPrefix(s, "-")
	whole, frac, dot := strings.Cut(t, ".")
	if whole == "" || len(whole) > 9 || len(frac) > 6 || dot && frac == "" || len(whole) > 1 && whole[0] == '0' {
		return 0, errMicro
	}
	v, err := strconv.ParseUint(whole+frac+strings.Repeat("0", 6-len(frac)), 10, 63)
	if err != nil {
		return 0, errMicro
	}
	if neg {
		return -Micro(v), nil
	}
	return Micro(v), nil
}

// roundMicro rounds x, in units of one, half to even. It is not sure where x lies so
// close to the middle between two millionths that the error of a float64
// computation could decide; the caller then computes exactly.
func roundMicro(x float64) (m Micro, sure bool) {
	y := float64(x * 1e6)
	if math.Abs(math.Abs(y-math.Floor(y))-0.5) < 1e-3 { // 1e-9 in units of one
		return 0, false
	}
	return Micro(math.RoundToEven(y)), true
}

// roundRat rounds an exact number half to even.
func roundRat(x *big.Rat) Micro {
	n := new(big.Int).Mul(x.Num(), big.NewInt(2*int64(One)))
	d := x.Denom()
	twice, rest := new(big.Int).DivMod(n, d, new(big.Int)) // floor(2y), y in millionths
	odd := twice.Bit(0) == 1
	half := new(big.Int).Rsh(twice, 1) // floor(y)
	// y = half + (odd ? 1/2 : 0) + something below 1/2 that is 0 iff rest is 0.
	if odd && (rest.Sign() != 0 || half.Bit(0) == 1) {
		half.Add(half, big.NewInt(1))
	}
	return Micro(half.Int64())
}

func (m Micro) rat() *big.Rat { return big.NewRat(int64(m), int64(One)) }

func (m Micro) float() float64 { return float64(float64(m) / 1e6) }

func clamp01(m Micro) Micro { return max(0, min(One, m)) }

// mulMicro is a·b, rounded half to even.
func mulMicro(a, b Micro) Micro {
	return roundRat(new(big.Rat).Mul(a.rat(), b.rat()))
}

// bits is the precision of the exact path: far beyond what six decimal places
// of an irrational number can need.
const bits = 320

// ln2 is 2·artanh(1/3).
var ln2 = sync.OnceValue(func() *big.Float {
	sum, ninth := new(big.Float).SetPrec(bits), new(big.Float).SetPrec(bits).Quo(big.NewFloat(1), big.NewFloat(9))
	term := new(big.Float).SetPrec(bits).Quo(new(big.Float).SetPrec(bits).SetInt64(2), new(big.Float).SetPrec(bits).SetInt64(3))
	for k := int64(0); k < 120; k++ {
		sum.Add(sum, new(big.Float).SetPrec(bits).Quo(term, new(big.Float).SetPrec(bits).SetInt64(2*k+1)))
		term.Mul(term, ninth)
	}
	return sum
})

// exp2Neg returns 2^(-age/half) for age >= 0 and half > 0: exactly where that
// is rational, else to far more places than anybody compares.
func exp2Neg(age, half int64) *big.Rat {
	whole, rest := age/half, age%half
	if whole > 400 {
		return new(big.Rat) // below 1e-120
	}
	f := big.NewRat(1, 1)
	if rest != 0 {
		y := new(big.Float).SetPrec(bits).SetInt64(rest)
		y.Quo(y, new(big.Float).SetPrec(bits).SetInt64(half))
		y.Mul(y, ln2()).Neg(y)
		sum, term := big.NewFloat(1).SetPrec(bits), big.NewFloat(1).SetPrec(bits)
		for k := int64(1); k < 90; k++ {
			term.Mul(term, y).Quo(term, new(big.Float).SetPrec(bits).SetInt64(k))
			sum.Add(sum, term)
		}
		f, _ = sum.Rat(nil)
	}
	return f.Mul(f, new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), uint(whole))))
}
