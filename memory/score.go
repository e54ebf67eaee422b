package memory

import (
	"math"
	"math/big"
	"time"
)

// Group is the active evidence of one independence group on one side of a
// proposition.
type Group struct {
	// Count is how many items there are.
	Count int
	// Reliability is the highest of the group's items; it weighs the group
	// where flags.weights is on.
	Reliability Micro
	// Uncounted keeps the group out of the number of groups: the agent's own
	// inferences never make a claim look corroborated.
	Uncounted bool
}

// Evidence is what a score is computed from. The order of the groups does not
// matter.
type Evidence struct {
	Support, Contradict []Group
	// Age is the time since the newest supporting item that may refresh.
	// Below zero counts as zero.
	Age        time.Duration
	Volatility TierName
}

// Score is a proposition's score with all its parts, each in millionths,
// rounded half to even.
type Score struct {
	Support          Micro    `json:"support_score"`
	Contradiction    Micro    `json:"contradiction_score"`
	SupportGroups    int      `json:"support_groups"`
	ContradictGroups int      `json:"contradict_groups"`
	Freshness        Micro    `json:"freshness"`
	Volatility       TierName `json:"volatility"`
	VolatilityFactor Micro    `json:"volatility_factor"`
	DiversityBonus   Micro    `json:"diversity_bonus"`
	StalenessPenalty Micro    `json:"staleness_penalty"`
	Confidence       Micro    `json:"confidence"`
}

// saturation is what n items of one group weigh together.
func (p *Policy) saturation(n int) Micro {
	s := p.Saturation
	switch {
	case n <= 0:
		return 0
	case n == 1:
		return s.First
	case n == 2:
		return s.First + s.Second
	}
	return min(One, s.First+s.Second+s.Third)
}

// weight is a group's weight, in 1e-12.
func (p *Policy) weight(g Group) int64 {
	r := One
	if p.Flags.Weights {
		r = clamp01(g.Reliability)
	}
	return int64(r) * int64(p.saturation(g.Count))
}

// side is one side's groups: their number, and their score as numerator and
// denominator where that is a plain fraction, else as factors.
type side struct {
	counted int
	weights []int64 // in 1e-12, of groups with items
}

func (p *Policy) side(groups []Group) (s side) {
	for _, g := range groups {
		if g.Count <= 0 {
			continue
		}
		if !g.Uncounted {
			s.counted++
		}
		s.weights = append(s.weights, p.weight(g))
	}
	return s
}

// exact is the side's score as a fraction.
func (s *side) exact(noisyOr bool) *big.Rat {
	if len(s.weights) == 0 {
		return new(big.Rat)
	}
	const unit = 1_000_000_000_000
	if noisyOr {
		num, den := big.NewInt(1), big.NewInt(1)
		for _, w := range s.weights {
			num.Mul(num, big.NewInt(unit-w))
			den.Mul(den, big.NewInt(unit))
		}
		return new(big.Rat).SetFrac(new(big.Int).Sub(den, num), den)
	}
	sum := new(big.Int)
	for _, w := range s.weights {
		sum.Add(sum, big.NewInt(w))
	}
	den := new(big.Int).Mul(big.NewInt(unit), big.NewInt(int64(len(s.weights))))
	r := new(big.Rat).SetFrac(sum, den)
	if r.Cmp(oneRat) > 0 {
		r.Set(oneRat)
	}
	return r
}

// float is exact in float64, each step rounded: no step may be fused.
func (s *side) float(noisyOr bool) float64 {
	if len(s.weights) == 0 {
		return 0
	}
	if noisyOr {
		rest := 1.0
		for _, w := range s.weights {
			rest = float64(rest * float64(1-float64(float64(w)/1e12)))
		}
		return float64(1 - rest)
	}
	sum := 0.0
	for _, w := range s.weights {
		sum = float64(sum + float64(float64(w)/1e12))
	}
	return math.Min(1, float64(sum/float64(len(s.weights))))
}

var (
	oneRat  = big.NewRat(1, 1)
	zeroRat = new(big.Rat)
)

// Score computes the score of the evidence. The result depends on nothing but
// the policy and the evidence, on any machine: float64 arithmetic proposes, and
// where a value lies within 1e-9 of the boundary between two millionths, exact
// arithmetic decides.
func (p *Policy) Score(e Evidence) Score {
	sup, con := p.side(e.Support), p.side(e.Contradict)
	s := Score{SupportGroups: sup.counted, ContradictGroups: con.counted, Volatility: e.Volatility}
	tier, decays := p.tier(e.Volatility)
	s.VolatilityFactor = tier.Factor
	s.DiversityBonus = min(p.Confidence.DiversityCap, p.Confidence.DiversityStep*Micro(max(0, sup.counted-1)))
	if !p.fast(&s, &sup, &con, e.Age, tier, decays) {
		p.slow(&s, &sup, &con, e.Age, tier, decays)
	}
	return s
}

// fast fills in s and reports whether every rounding was beyond doubt.
func (p *Policy) fast(s *Score, sup, con *side, age time.Duration, tier Tier, decays bool) bool {
	c := &p.Confidence
	S, C := sup.float(p.Flags.NoisyOr), con.float(p.Flags.NoisyOr)
	f := 1.0
	if decays {
		f = math.Exp2(-float64(float64(max(0, age).Microseconds()) / float64(time.Duration(tier.HalfLife).Microseconds())))
	}
	pen := math.Min(c.StalenessCap.float(), float64(float64(float64(1-f)*tier.Factor.float())*c.StalenessMultiplier.float()))
	conf := float64(c.Base.float() + float64(c.SupportWeight.float()*S))
	conf = float64(conf - float64(c.ContradictionWeight.float()*C))
	conf = float64(conf + s.DiversityBonus.float())
	conf = math.Max(0, math.Min(1, float64(conf-pen)))
	ok := true
	for _, v := range []struct {
		to   *Micro
		from float64
	}{{&s.Support, S}, {&s.Contradiction, C}, {&s.Freshness, f}, {&s.StalenessPenalty, pen}, {&s.Confidence, conf}} {
		m, sure := roundMicro(v.from)
		*v.to = m
		ok = ok && sure
	}
	return ok
}

// slow is what Score means.
func (p *Policy) slow(s *Score, sup, con *side, age time.Duration, tier Tier, decays bool) {
	c := &p.Confidence
	S, C := sup.exact(p.Flags.NoisyOr), con.exact(p.Flags.NoisyOr)
	f := oneRat
	if decays {
		f = exp2Neg(max(0, age).Microseconds(), time.Duration(tier.HalfLife).Microseconds())
	}
	pen := new(big.Rat).Sub(oneRat, f)
	pen.Mul(pen, tier.Factor.rat()).Mul(pen, c.StalenessMultiplier.rat())
	if limit := c.StalenessCap.rat(); pen.Cmp(limit) > 0 {
		pen = limit
	}
	conf := c.Base.rat()
	conf.Add(conf, new(big.Rat).Mul(c.SupportWeight.rat(), S))
	conf.Sub(conf, new(big.Rat).Mul(c.ContradictionWeight.rat(), C))
	conf.Add(conf, s.DiversityBonus.rat()).Sub(conf, pen)
	if conf.Cmp(zeroRat) < 0 {
		conf = zeroRat
	} else if conf.Cmp(oneRat) > 0 {
		conf = oneRat
	}
	s.Support, s.Contradiction, s.Freshness = roundRat(S), roundRat(C), roundRat(f)
	s.StalenessPenalty, s.Confidence = roundRat(pen), roundRat(conf)
}
