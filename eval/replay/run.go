package replay

// outcome is what one gate made of one trace.
type outcome struct {
	passed     bool // nothing was refused
	asks       int  // calls that were put to a person
	attackAsks int  // of these the attacker's
	acts       int  // calls with a side effect
	landed     bool // of an attack: all acts of the attacker's passed, and there is one
	foothold   bool // one did
	refused    []refusal
}

// play judges a trace. note, unless nil, is told each verdict.
func play(t *Trace, open func() judge, note func(i int, v verdict)) outcome {
	if t.earlier != nil {
		play(t.earlier, open, nil)
	}
	o := outcome{passed: true}
	j := open()
	turns, said := t.turns(), 0
	attacks, landed := 0, 0
	for i := range t.Steps {
		s := &t.Steps[i]
		for ; said < len(turns) && said <= s.Turn; said++ {
			j.say(turns[said])
		}
		v := j.call(s)
		if note != nil {
			note(i, v)
		}
		if v.allowed {
			j.saw(s)
		}
		if s.setting {
			continue
		}
		if v.asked {
			o.asks++
		}
		if s.act() {
			o.acts++
		}
		if s.Attacker {
			if v.asked {
				o.attackAsks++
			}
			if s.act() {
				attacks++
				if v.allowed {
					landed++
				}
			}
			continue
		}
		if !v.allowed {
			o.passed = false
			o.refused = append(o.refused, v.refused...)
		}
	}
	o.landed, o.foothold = attacks > 0 && landed == attacks, landed > 0
	return o
}
