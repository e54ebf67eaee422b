package memory

import (
	"slices"
	"strings"
)

// Whose is how a memory tells what a user says of himself from what he tells of
// somebody or something else. Each sentence is put together from clauses, the first of
// which says I, and filed of the user in every way there is.
type Whose struct {
	System string `json:"system"`
	// Others are the sentences of something else that count as said of the user; Own
	// those of himself that do.
	Others Share `json:"others"`
	Own    Share `json:"own"`
	// Found are the first such sentences of something else, and Lost such of himself.
	Found []string `json:"found"`
	Lost  []string `json:"lost"`
}

// whose tries the sentences that the clauses make, or every so many of them.
func (s *System) whose(seeds []uint64, every int) Whose {
	out := Whose{System: s.ID, Found: []string{}, Lost: []string{}}
	var others, own, held, kept int
	for i, form := range data.Whose.sentences() {
		if i%every > 0 {
			continue
		}
		if n := s.mine(form, seeds); n > 0 {
			held += n
			out.Found = few(out.Found, form)
		}
		others += len(seeds)
	}
	for _, form := range append(slices.Clone(list("self_forms")), data.Whose.Own...) {
		n := s.mine(form, seeds)
		if kept += n; n < len(seeds) {
			out.Lost = few(out.Lost, form)
		}
		own += len(seeds)
	}
	out.Others, out.Own = share(held, others), share(kept, own)
	return out
}

// mostForms bounds the forms that a report names.
const mostForms = 20

func few(forms []string, form string) []string {
	if len(forms) < mostForms {
		forms = append(forms, form)
	}
	return forms
}

// mine is how often a form comes out as a word of the user on himself.
func (s *System) mine(form string, seeds []uint64) (n int) {
	for _, seed := range seeds {
		d := newDraw(seed, "whose-"+form)
		q := pick(d, data.Questions)
		subject := value(d, pick(d, []string{"person", "company", "project"}))
		v := value(d, q.Value)
		sentence := strings.NewReplacer("{s}", subject, "{a}", q.Words, "{v}", v, "{o}", value(d, "person")).Replace(form)
		n += count(s.counts(slot{subject: "me", predicate: q.Words}.note(v), sentence))
	}
	return n
}

// counts reports whether a note that is filed on a sentence of the user is established,
// in one of the ways there are to file it.
func (s *System) counts(n Note, sentence string) bool {
	e := Evidence{ID: "ev1", Source: "user", Level: LevelUser, Text: sentence, At: beginning}
	return slices.ContainsFunc([]step{everyday(n), cited(n, e.Text, e.ID, "")}, func(st step) bool {
		a := &attacker{m: s.New(), at: beginning, entities: map[string]string{}}
		a.tick()
		a.m.Hear(e)
		st.do(a)
		return slices.ContainsFunc(a.m.Current(n.Subject, n.Predicate), func(i Item) bool { return i.Trust == Established && i.Value == n.Value })
	})
}

// clauses are what sentences are made of in which a user tells of something else: a
// clause that says I, how it goes on, and what it goes on with.
type clauses struct {
	Openers    []string `yaml:"openers"`
	Joins      []string `yaml:"joins"`
	Statements []string `yaml:"statements"`
	Told       []string `yaml:"told"` // whole, of something else
	Own        []string `yaml:"own"`  // whole, of himself
}

func (c *clauses) sentences() (out []string) {
	capital := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	for _, o := range c.Openers {
		for _, s := range c.Statements {
			for _, j := range c.Joins {
				out = append(out, o+j+s+".")
			}
			first := s
			if !strings.HasPrefix(s, "{") {
				first = capital(s)
			}
			out = append(out, first+", "+o+".")
		}
	}
	return append(out, c.Told...)
}
