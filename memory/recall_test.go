package memory

import (
	"maps"
	"slices"
	"testing"
)

// What is narrowed to somebody is found among however many that have the words.
func TestRecallAboutAmongMany(t *testing.T) {
	s, c := grown(t, 1000)
	_, about := benchSaid(950, 1000)
	r := Reader{State: s, Principal: c.Principal, Now: c.Now}
	for _, a := range []Ask{{Query: "meeting", About: about}, {Query: "meeting", About: "Person50"}, {Query: "meeting Person50"}} {
		found := r.Recall(a)
		if len(found.Items) == 0 || found.Items[0].About != about && a.About == about {
			t.Errorf("%+v: %+v", a, found)
		}
	}
}

// A question with many answers is heard once for a read, and not once for each.
func TestReadsOfOneQuestion(t *testing.T) {
	s, c := asked(t, "list", 150)
	r := Reader{State: s, Principal: c.Principal, Now: c.Now}
	sl := s.slots.keys()[0]
	if len(r.Recall(Ask{Query: "emails of Anna"}).Items) == 0 {
		t.Error("nothing is found")
	}
	heard := maps.Clone(s.hearings)
	r.Explain(s.slots.get(sl).Propositions[0])
	r.Answer(sl)
	r.Timeline(sl, 0, 20)
	// A timeline hears the question once for each point of time it tells of, and nothing twice.
	if len(heard) != 1 {
		t.Errorf("a recall heard %d questions, not one", len(heard))
	}
	for key, first := range heard {
		if s.hearings[key] != first {
			t.Errorf("%v was heard anew", key)
		}
	}
	if len(s.hearings) > 1+20 {
		t.Errorf("%d questions were heard", len(s.hearings))
	}
}

// A timeline that is read page by page is the one that is read as a whole.
func TestTimelinePages(t *testing.T) {
	s, c := asked(t, "corrections", 12)
	r := Reader{State: s, Principal: c.Principal, Now: c.Now}
	sl := s.slots.keys()[0]
	all := r.Timeline(sl, 0, 0).Moments
	for _, limit := range []int{1, 7, 20} {
		page := r.Timeline(sl, 0, limit)
		if mustJSON(t, page.Moments) != mustJSON(t, all[:limit]) || !page.More {
			t.Errorf("the first %d are %v, and of all %v", limit, page, all[:limit])
		}
	}
	from := all[len(all)/2].Record
	rest := r.Timeline(sl, from, 0).Moments
	if mustJSON(t, rest) != mustJSON(t, slices.DeleteFunc(all, func(m Moment) bool { return m.Record < from })) {
		t.Errorf("from record %d on: %v", from, rest)
	}
}
