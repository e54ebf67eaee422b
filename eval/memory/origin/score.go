// Package origin is the rules of the public design that this memory grew out of,
// with its figures, as functions without state and as a small memory that goes by
// them. The product does not use them: they are what it is measured beside.
//
// Scores are computed exactly and rounded to millionths, half to even, before
// anything is compared with a threshold. The design compares float64 values, so
// that two machines can differ in the last bit; where no value lies within a
// millionth of a threshold the two agree, and the vectors of testdata hold that.
package origin

import (
	"math/big"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Micro is a number in millionths.
type Micro int64

// One is 1.000000.
const One Micro = 1_000_000

// String returns the shortest decimal of a number that is not below zero: "0.78".
func (m Micro) String() string {
	s := strconv.FormatInt(int64(m/One), 10)
	if f := int64(m % One); f != 0 {
		s += "." + strings.TrimRight(strconv.FormatInt(int64(One)+f, 10)[1:], "0")
	}
	return s
}

func (m Micro) rat() *big.Rat { return big.NewRat(int64(m), int64(One)) }

// rounded is x, of 0 or more, in millionths, half to even.
func rounded(x *big.Rat) Micro {
	y := new(big.Rat).Mul(x, big.NewRat(int64(One), 1))
	whole, rest := new(big.Int).DivMod(y.Num(), y.Denom(), new(big.Int))
	if c := rest.Lsh(rest, 1).Cmp(y.Denom()); c > 0 || c == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(1))
	}
	return Micro(whole.Int64())
}

// Tier says how fast a claim grows stale.
type Tier string

// The tiers.
const (
	Low    Tier = "low"
	Medium Tier = "medium"
	High   Tier = "high"
)

// constants are a tier's half-life and factor; what is no tier is Medium.
func (t Tier) constants() (halfLife time.Duration, factor Micro) {
	switch t {
	case Low:
		return 168 * time.Hour, 500_000
	case High:
		return 24 * time.Hour, 2 * One
	}
	return 72 * time.Hour, One
}

// The constants of the confidence formula.
const (
	base                = 500_000
	supportWeight       = 400_000
	contradictionWeight = 500_000
	diversityStep       = 50_000
	diversityCap        = 150_000
	stalenessWeight     = 300_000
	stalenessCap        = 300_000
)

// Evidence is what a score is computed from.
type Evidence struct {
	// Support and Contradict are how many items there are of each independence
	// group; a count of zero or less is no group. Their order is no matter.
	Support, Contradict []int
	// Age is the time since the newest support; below zero counts as zero.
	Age  time.Duration
	Tier Tier
}

// Score is a claim's score with its parts.
type Score struct {
	Support, Contradiction          Micro
	SupportGroups, ContradictGroups int
	Freshness, Diversity, Staleness Micro
	Confidence                      Micro
	tier                            Tier
}

// saturation is what n items of one group weigh, in tenths: 0.7, 0.2 more, 0.1
// more, and nothing from then on.
func saturation(n int) int64 { return [...]int64{0, 7, 9, 10}[max(0, min(n, 3))] }

// mean is the score of one side, and how many groups it has.
func mean(groups []int) (*big.Rat, int) {
	sum, n := int64(0), 0
	for _, g := range groups {
		if g > 0 {
			sum, n = sum+saturation(g), n+1
		}
	}
	return big.NewRat(sum, int64(10*max(1, n))), n
}

// Of computes the score of the evidence.
func Of(e Evidence) Score {
	s := Score{tier: e.Tier}
	var sup, con *big.Rat
	sup, s.SupportGroups = mean(e.Support)
	con, s.ContradictGroups = mean(e.Contradict)
	s.Diversity = min(diversityCap, diversityStep*Micro(max(0, s.SupportGroups-1)))
	half, factor := e.Tier.constants()
	fresh := exp2Neg(max(0, e.Age).Microseconds(), half.Microseconds())
	stale := new(big.Rat).Sub(One.rat(), fresh)
	stale.Mul(stale, factor.rat()).Mul(stale, Micro(stalenessWeight).rat())
	if limit := Micro(stalenessCap).rat(); stale.Cmp(limit) > 0 {
		stale = limit
	}
	conf := new(big.Rat).Add(Micro(base).rat(), new(big.Rat).Mul(Micro(supportWeight).rat(), sup))
	conf.Sub(conf, new(big.Rat).Mul(Micro(contradictionWeight).rat(), con))
	conf.Add(conf, s.Diversity.rat()).Sub(conf, stale)
	if conf.Sign() < 0 {
		conf = new(big.Rat)
	} else if conf.Cmp(One.rat()) > 0 {
		conf = One.rat()
	}
	s.Support, s.Contradiction, s.Freshness = rounded(sup), rounded(con), rounded(fresh)
	s.Staleness, s.Confidence = rounded(stale), rounded(conf)
	return s
}

// bits is far more precision than six places of an irrational number can need.
const bits = 256

func float(n int64) *big.Float { return new(big.Float).SetPrec(bits).SetInt64(n) }

// ln2 is 2·artanh(1/3).
var ln2 = sync.OnceValue(func() *big.Float {
	sum, term := float(0), float(0).Quo(float(2), float(3))
	for k := int64(0); k < 90; k++ {
		sum.Add(sum, float(0).Quo(term, float(2*k+1)))
		term.Quo(term, float(9))
	}
	return sum
})

// exp2Neg returns 2^(-age/half) for age >= 0 and half > 0: exactly where that is
// rational, else to far more places than anybody compares.
func exp2Neg(age, half int64) *big.Rat {
	whole, rest := age/half, age%half
	if whole > 400 {
		return new(big.Rat)
	}
	f := big.NewRat(1, 1)
	if rest != 0 {
		y := float(0).Quo(float(rest), float(half))
		y.Mul(y, ln2()).Neg(y)
		sum, term := float(1), float(1)
		for k := int64(1); k < 60; k++ {
			term.Quo(term.Mul(term, y), float(k))
			sum.Add(sum, term)
		}
		f, _ = sum.Rat(nil)
	}
	return f.Quo(f, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(whole))))
}
