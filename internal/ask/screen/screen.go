package screen

import (
	"crypto/sha256"
	"regexp"
	"slices"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
)

// MaxText bounds the text that is read, in bytes. A longer one halts.
const MaxText = 64 << 10

// maxExcused bounds how many matches of one pattern exceptions may excuse in
// one reading. One more halts.
const maxExcused = 1_000

// Verdict says whether a text may be acted on. The zero Verdict halts.
type Verdict struct {
	// Pass is true only if every pattern was tried and none matched.
	Pass bool `json:"pass"`
	// Reason is why it halts, "" with Pass.
	Reason writ.Reason `json:"reason,omitempty"`
	// Class, Title and Rule name what matched, as the operator's file does:
	// "weapons", "Making weapons", "weapons.explosives". They are "" where the
	// text could not be read at all.
	Class string `json:"class,omitempty"`
	Title string `json:"title,omitempty"`
	Rule  string `json:"rule,omitempty"`
	// Reply is what to tell the user, the operator's words.
	Reply string `json:"reply,omitempty"`
	// Start and End bound the bytes of the text that matched.
	Start int `json:"start"`
	End   int `json:"end"`
}

// Halt is the opposite of Pass.
func (v Verdict) Halt() bool { return !v.Pass }

// Rejection returns the verdict in its outside form; it is nil with Pass.
func (v Verdict) Rejection() *writ.Rejection {
	if v.Pass {
		return nil
	}
	r := v.Reason
	if r == "" {
		r = writ.ScreenUnread
	}
	need := "a request the input policy does not name"
	switch r {
	case writ.ScreenNotText:
		need = "a text in UTF-8"
	case writ.ScreenTooLarge:
		need = "a text of at most 64 KiB"
	}
	return &writ.Rejection{Code: writ.CodeOf(r), Reason: r, Failures: []writ.Failure{{Reason: r, Need: need}}}
}

// Screen is one compiled set of patterns. It is safe for concurrent use.
type Screen struct {
	classes []class
	id      [sha256.Size]byte
}

type class struct {
	id, title, reply string
	rules            []rule
}

type rule struct {
	id     string // with its class: "weapons.explosives"
	halt   []pattern
	except []pattern
}

// pattern is one pattern, for readings (whole words) and for letters that were
// set apart without a sign of where words end.
type pattern struct {
	words, letters *regexp.Regexp
	// Of each set a text that words match has one string, and one that letters
	// match.
	needs, letterNeeds [][]string
}

const (
	replyNotText  = "The request is not text that can be read, so nothing was done."
	replyTooLarge = "The request is too long to be checked, so nothing was done."
	replyUnread   = "The request was not checked, so nothing was done."
)

// Check reads the text, at a cost that maxWork bounds. Classes, rules and patterns are tried in the order of
// the file, each on every reading; the first match that no exception excuses
// halts. Equal texts get equal verdicts.
func (s *Screen) Check(text string) Verdict {
	v, _ := s.check(text, maxWork)
	return v
}

// check returns the verdict and what is left of the work it may do.
func (s *Screen) check(text string, left int) (Verdict, int) {
	switch {
	case s == nil || len(s.classes) == 0:
		return Verdict{Reason: writ.ScreenUnread, Reply: replyUnread}, left
	case len(text) > MaxText:
		return Verdict{Reason: writ.ScreenTooLarge, Reply: replyTooLarge}, left
	case !utf8.ValidString(text):
		return Verdict{Reason: writ.ScreenNotText, Reply: replyNotText}, left
	}
	views := readings(text)
	for _, c := range s.classes {
		for _, r := range c.rules {
			for i := range views {
				start, end, ok := r.match(&views[i], &left)
				if left < 0 {
					return Verdict{Reason: writ.ScreenUnread, Reply: replyUnread}, left
				}
				if ok {
					return Verdict{Reason: writ.ScreenHalt, Class: c.id, Title: c.title, Rule: r.id, Reply: c.reply,
						Start: views[i].from[start], End: views[i].to[end-1]}, left
				}
			}
		}
	}
	return Verdict{Pass: true}, left
}

// match returns the first range of the reading that the rule halts on. What it
// costs is taken from left; below zero the answer means nothing.
func (r *rule) match(v *reading, left *int) (start, end int, ok bool) {
	excused := map[[2]int][][]int{} // by sentence and chunk
	for i := range r.halt {
		p := &r.halt[i]
		if start, end, ok = r.matchWords(p, v, excused, left); !ok {
			start, end, ok = p.matchLetters(v, left)
		}
		if ok || *left < 0 {
			return start, end, ok
		}
	}
	return 0, 0, false
}

// matchWords is match of one pattern over the words.
func (r *rule) matchWords(p *pattern, v *reading, excused map[[2]int][][]int, left *int) (start, end int, ok bool) {
	tries := 0
	for n := range v.chunks {
		c := &v.chunks[n]
		if !p.may(v.text, c) {
			continue
		}
		for at := c.from; at < c.next && *left >= 0; tries++ {
			m := p.words.FindStringIndex(v.text[at:c.to])
			if m == nil {
				*left -= c.to - at
				break
			}
			*left -= m[1]
			start, end = at+m[0]+1, at+m[1]-1 // without the spaces around
			if tries == maxExcused || !r.excuses(v, n, start, end, excused, left) {
				return start, end, true
			}
			at = start // the space before the next word lies behind it
		}
	}
	return 0, 0, false
}

// matchLetters is match of one pattern over letters that were set apart.
func (p *pattern) matchLetters(v *reading, left *int) (start, end int, ok bool) {
	for _, l := range v.letters {
		if !hasAll(v.text[l[0]:l[1]], p.letterNeeds) {
			continue
		}
		if *left -= 2 * (l[1] - l[0]); *left < 0 {
			break
		}
		if m := p.letters.FindStringIndex(v.text[l[0]:l[1]]); m != nil && m[1] > m[0] {
			return l[0] + m[0], l[0] + m[1], true
		}
	}
	return 0, 0, false
}

// excuses says whether an exception overlaps the range, which lies in chunk n.
// An exception lies in one sentence, so that words behind a full stop excuse
// nothing before it.
func (r *rule) excuses(v *reading, n, start, end int, known map[[2]int][][]int, left *int) bool {
	from, to := v.chunks[max(n-1, 0)].from, v.chunks[min(n+1, len(v.chunks)-1)].to
	s, found := slices.BinarySearch(v.breaks, start)
	if !found {
		s--
	}
	for ; s+1 < len(v.breaks) && v.breaks[s] < end; s++ {
		ranges, ok := known[[2]int{s, n}]
		if !ok {
			ranges = r.exceptions(v, max(from, v.breaks[s]), min(to, v.breaks[s+1]+1), left)
			known[[2]int{s, n}] = ranges
		}
		if slices.ContainsFunc(ranges, func(r []int) bool { return r[0] < end && start < r[1] }) {
			return true
		}
	}
	return false
}

// exceptions returns the ranges of one sentence that exceptions match.
func (r *rule) exceptions(v *reading, from, to int, left *int) (out [][]int) {
	for _, e := range r.except {
		for at := from; at < to && *left >= 0; {
			m := e.words.FindStringIndex(v.text[at:to])
			if m == nil {
				*left -= to - at
				break
			}
			*left -= m[1]
			out = append(out, []int{at + m[0] + 1, at + m[1] - 1})
			at += m[0] + 1
		}
	}
	return out
}

// ID is the SHA-256 of the file that it was read from.
func (s *Screen) ID() [sha256.Size]byte { return s.id }
