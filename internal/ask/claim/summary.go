package claim

import (
	"slices"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// The bounds of a summary.
const (
	SummaryBytes  = 1 << 20
	summaryItems  = 200     // of all three lists together
	textBytes     = 4 << 10 // of an item's text
	evidenceBytes = 4 << 10
	summaryDepth  = 3
)

// Item is one statement of a summary and what it rests on.
type Item struct {
	// Text is the model's own wording. That its quote stands there says nothing
	// about it: see NotInQuote.
	Text string `json:"text"`
	// Evidence is what the model says stands in the source.
	Evidence string `json:"evidence"`
	// Quote is where it stands. It is the zero Quote until Ground found it.
	Quote Quote `json:"quote,omitzero"`
	// Within is the text around the quote: its whole sentence, and what else
	// keeps a cut from hiding something. It is "" where that is the quote
	// itself, and an ellipsis stands where it goes on.
	Within string `json:"within,omitempty"`
	// NotInQuote are the words of Text that say what the quote does not:
	// numbers, identifiers, addresses, names, negations. LeftOut are those of
	// the quoted sentence that Text goes against by leaving them out. Both are
	// found by rule and prove nothing: a text without them may be false still.
	NotInQuote []string `json:"not_in_quote,omitempty"`
	LeftOut    []string `json:"left_out,omitempty"`
}

// Summary is the form of a summary. One that ParseSummary returned has the
// right shape and says nothing about evidence; one of Ground is evidence-locked.
type Summary struct {
	Bullets         []Item `json:"bullets"`
	Risks           []Item `json:"risks"`
	Recommendations []Item `json:"recommendations"`
}

// lists yields the three lists with their names, in the order of the format.
func (s *Summary) lists() [3]struct {
	name  string
	items *[]Item
} {
	return [3]struct {
		name  string
		items *[]Item
	}{{"bullets", &s.Bullets}, {"risks", &s.Risks}, {"recommendations", &s.Recommendations}}
}

// Unmarked returns the summary without what MarkRules add to its quotes.
func (s Summary) Unmarked() Summary {
	for _, l := range s.lists() {
		*l.items = slices.Clone(*l.items)
		for i, item := range *l.items {
			(*l.items)[i] = Item{Text: item.Text, Evidence: item.Evidence, Quote: item.Quote}
		}
	}
	return s
}

// JSON returns the summary as ParseSummary reads it: without quotes.
func (s Summary) JSON() []byte {
	out := []byte(`{"type":"summary"`)
	for _, l := range s.lists() {
		out = append(append(append(out, ','), strictjson.Quote(l.name)...), ":["...)
		for i, item := range *l.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(out, `{"text":`...), strictjson.Quote(item.Text)...)
			out = append(append(append(out, `,"evidence":`...), strictjson.Quote(item.Evidence)...), '}')
		}
		out = append(out, ']')
	}
	return append(out, '}')
}

// ParseSummary reads a model's summary as strictly as ParsePlan reads a plan:
//
//	{"type":"summary","bullets":[{"text":"…","evidence":"…"}],"risks":[…],"recommendations":[…]}
//
// All three lists stand there, any of them may be empty but not all, and every
// item has a text and evidence that are not empty. It stops at grounding.
func ParseSummary(b []byte) (Summary, *Stop) {
	stop := func(r writ.Reason, pointer, need string) (Summary, *Stop) {
		return Summary{}, because(StageGrounding, r, pointer, need)
	}
	if strictjson.Check(b, strictjson.Limits{Bytes: SummaryBytes, Depth: summaryDepth}) != nil || strictjson.KindOf(b) != strictjson.Object {
		return stop(writ.SummarySyntax, "", "exactly one JSON object of at most 1 MiB, nested at most 3 deep, each key once, with nothing around it")
	}
	if r := keysOf(b, "type", "bullets", "risks", "recommendations"); r != "" {
		return stop(r, "", "the keys type, bullets, risks and recommendations, and no others")
	}
	if t, _ := strictjson.Text(strictjson.Get(b, "type")); t != "summary" {
		return stop(writ.SummaryValue, "/type", "the value summary")
	}
	var s Summary
	total := 0
	for _, l := range s.lists() {
		elements, ok := strictjson.Elements(strictjson.Get(b, l.name))
		if !ok {
			return stop(writ.SummaryValue, "/"+l.name, "a list of items")
		}
		if total += len(elements); total > summaryItems {
			return stop(writ.SummaryValue, "/"+l.name, "at most 200 items")
		}
		*l.items = make([]Item, len(elements))
		for i, e := range elements {
			item, r, member, need := parseItem(e)
			if r != "" {
				return stop(r, pointerOf(l.name, i)+member, need)
			}
			(*l.items)[i] = item
		}
	}
	if total == 0 {
		return stop(writ.SummaryValue, "", "at least one item")
	}
	return s, nil
}

// parseItem reads one item; a reason says what is wrong, and with which member of it.
func parseItem(e []byte) (item Item, r writ.Reason, member, need string) {
	if strictjson.KindOf(e) != strictjson.Object {
		return item, writ.SummaryValue, "", "an item with text and evidence"
	}
	item.Text, _ = strictjson.Text(strictjson.Get(e, "text"))
	item.Evidence, _ = strictjson.Text(strictjson.Get(e, "evidence"))
	switch r := keysOf(e, "text", "evidence"); {
	case r != "":
		return item, r, "", "the keys text and evidence, and no others"
	case !visible(item.Text) || len(item.Text) > textBytes:
		return item, writ.SummaryValue, "/text", "a text, not empty, of at most 4 KiB"
	case strings.TrimSpace(item.Evidence) == "" || len(item.Evidence) > evidenceBytes:
		return item, writ.SummaryValue, "/evidence", "a quote of the source, not empty, of at most 4 KiB"
	}
	return item, "", "", ""
}

// keysOf says what is wrong with the keys of a checked object.
func keysOf(object []byte, keys ...string) writ.Reason {
	members, _ := strictjson.Members(object)
	known := 0
	for _, k := range keys {
		if strictjson.Get(object, k) != nil {
			known++
		}
	}
	switch {
	case len(members) > known:
		return writ.SummaryUnknownKey
	case known < len(keys):
		return writ.SummaryMissingKey
	}
	return ""
}

func pointerOf(list string, i int) string { return "/" + list + "/" + strconv.Itoa(i) }
