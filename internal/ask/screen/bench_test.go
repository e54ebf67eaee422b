package screen

import (
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
)

// hard are texts that cost most, each repeated up to MaxText.
var hard = map[string]string{
	"digits apart": "h 0 w t 0 m 4 k e 1 ! | ",
	"letters":      "how to make a ",
	"mixed":        "how do i m4ke the b-0-m-b 1n a 6om6 5tyle, h.0.w t0 g3t ",
	"excused":      "make the bath bomb, write a short report. kill the child process; ",
	"gaps":         "get get find show me tell me want to learn to how to make my their access ",
	"one word":     "b o m b s p a s s w o r d s s e r v e r a c c o u n t g u n s a r i n ",
	"brackets":     "b()m()b 6()9 ",
	"words":        "INC-1042 the customer's log of eu-west-1 shows k8s node9 at 10:45 down. ",
}

// worst names words that many patterns need beside what costs most, so that
// they are run.
func worst(filler string) string {
	var b strings.Builder
	for b.Len() < MaxText-1000 {
		for _, w := range []string{"password", "account", "without", "bombs", "explosives", "gun", "sarin", "victims", "malware", "phone", "server", "credentials", "suicide", "die", "card", "login", "attack"} {
			b.WriteString(w + " ")
		}
		b.WriteString("zz zz zz zz zz " + filler + "zz zz zz zz zz ")
	}
	return b.String()[:min(b.Len(), MaxText)]
}

// nearMisses is the list of ordinary requests as one long text.
func nearMisses(t testing.TB) string {
	s := Default()
	var b strings.Builder
	for b.Len() < MaxText-8<<10 {
		for _, l := range append(list(t, "testdata/benign.txt", false), list(t, "testdata/heldout_benign.txt", false)...) {
			if b.Len() < MaxText-200 && s.Check(l.text).Pass {
				b.WriteString(l.text + ".\nzz zz zz zz zz zz zz zz zz zz. ")
			}
		}
	}
	return b.String()
}

// BenchmarkCheck prints what the longest text may cost, of the worst kinds that
// are known; bytes of work are those of maxWork.
func BenchmarkCheck(b *testing.B) {
	s := Default()
	texts := map[string]string{"near misses": nearMisses(b)}
	for name, text := range hard {
		texts[name] = strings.Repeat(text, MaxText/len(text))
		texts["worst "+name] = worst(text)
	}
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Check(text)
			}
			v, left := s.check(text, maxWork)
			b.ReportMetric(float64(maxWork-left)/(1<<20), "MB-work")
			b.Logf("%s %s", v.Reason, v.Rule)
		})
	}
}

// TestWork: what a text may cost is bounded, and long ordinary text stays within.
func TestWork(t *testing.T) {
	s := Default()
	text := nearMisses(t)
	if v, left := s.check(text, maxWork); v.Halt() || left < maxWork/4 {
		t.Errorf("%d bytes of near misses: %+v, %d of %d left", len(text), v, left, maxWork)
	}
	if v, _ := s.check(text, 1<<20); v.Pass || v.Reason != writ.ScreenUnread || v.Reply == "" {
		t.Errorf("beyond the bound: %+v", v)
	}
	for name, filler := range hard {
		if v, left := s.check(worst(filler), maxWork); left < -MaxText || left < 0 && v.Reason != writ.ScreenUnread {
			t.Errorf("%s: %+v, %d left", name, v, left)
		}
	}
}

// TestNeeds: a pattern that matches a reading is never passed over.
func TestNeeds(t *testing.T) {
	s := Default()
	n := 0
	for _, l := range append(list(t, "testdata/halt.txt", true), list(t, "testdata/benign.txt", false)...) {
		views := readings(l.text)
		for _, c := range s.classes {
			for _, r := range c.rules {
				for _, p := range append(r.halt[:len(r.halt):len(r.halt)], r.except...) {
					for i := range views {
						for _, run := range views[i].letters {
							if text := views[i].text[run[0]:run[1]]; p.letters.MatchString(text) && !hasAll(text, p.letterNeeds) {
								t.Errorf("%s is passed over in %q, needs %q", p.letters, text, p.letterNeeds)
							}
						}
						if c := views[i].chunks; len(c) == 1 && p.words.MatchString(views[i].text) {
							if n++; !p.may(views[i].text, &c[0]) {
								t.Errorf("%s is passed over in %q, needs %q", p.words, views[i].text, p.needs)
							}
						}
					}
				}
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d matches", n)
	}
	with := 0
	for _, c := range s.classes {
		for _, r := range c.rules {
			for _, p := range r.halt {
				if len(p.needs) > 0 {
					with++
				}
			}
		}
	}
	if with < 60 {
		t.Errorf("only %d patterns are passed over by a word", with)
	}
}

// TestNested: a pattern of many parts in each other is read in no time.
func TestNested(t *testing.T) {
	text := "bomb"
	for range 200 {
		text = "(?:make " + text + "|zz)"
	}
	parse(t, "version: 1\nclasses:\n  - {id: a, title: t, action: halt, reply: r, rules: [{id: one, patterns: '"+text+"'}]}\n")
}
