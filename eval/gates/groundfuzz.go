package gates

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
)

const pointer = "/structuredContent"

// leaf is a text or a number of a generated record. No word stands in a record
// twice, so that where a quote stands is known.
type leaf struct {
	name  string
	value string   // as the canonical text has it, without quotation marks
	words []string // of a text; nil for a number
	text  string   // the part of value from the first of some words to the last
	joint [3]string
}

// review is a summary in the making, of which one mutation changes the evidence
// of one item or the form.
type review struct {
	rng    *rand.Rand
	leaves []leaf
	text   string // the canonical text of the record
	bytes  string // the record, respelt or not
	prose  string // what stands beside the structured content
	limit  int
	items  [3]([]claim.Item)
	list   int // where the item stands that the mutation is about
	at     int
}

var listNames = [3]string{"bullets", "risks", "recommendations"}

// joints hold two words or numbers together: what ends at one is cropped.
var joints = []string{"\u00ad", "\u200b", "\u2060", "'", "\u2019", "-", "\u2011"}

// canonical writes the characters of a text as RFC 8785 does.
var canonical = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func newReview(rng *rand.Rand) *review {
	v := &review{rng: rng, limit: claim.SourceLimit}
	o := object{}
	for i := range 6 + rng.IntN(4) {
		l := leaf{name: word(rng, 7) + strconv.Itoa(i)}
		switch i % 3 {
		case 0:
			l.value = pick(rng, "", "-") + strconv.Itoa(10_000+rng.IntN(1_000_000)) + pick(rng, "", ".25")
			o = append(o, member{l.name, l.value})
		default:
			var b strings.Builder
			for k := range 4 + rng.IntN(5) {
				w := word(rng, 8+rng.IntN(3))
				if k%2 == 1 {
					w = strings.NewReplacer("a", "ä", "e", "é").Replace(w)
				}
				if l.words = append(l.words, w); k > 0 {
					b.WriteString(pick(rng, " ", " ", ", ", ". ", "\n", ` "`, `\ `, " 😀 "))
				}
				b.WriteString(w)
			}
			l.text = canonical.Replace(b.String())
			l.joint = [3]string{word(rng, 9), pick(rng, joints...), word(rng, 9)}
			l.value = l.text + ". " + strings.Join(l.joint[:], "")
			o = append(o, member{l.name, `"` + l.value + `"`})
		}
		v.leaves = append(v.leaves, l)
	}
	v.prose = word(rng, 7) + " " + word(rng, 9) + " " + word(rng, 8)
	v.text = o.String()
	written := v.text
	if rng.IntN(2) == 0 {
		written = respell(rng, written)
	}
	v.bytes = `{"content":[{"type":"text","text":` + str(v.prose) + `}],"structuredContent":` + written + `}`
	for l := range v.items {
		for range rng.IntN(3) {
			v.items[l] = append(v.items[l], claim.Item{Text: pick(rng, texts...), Evidence: v.some(true).text})
		}
	}
	v.list = rng.IntN(3)
	v.at = rng.IntN(len(v.items[v.list]) + 1)
	v.items[v.list] = slices.Insert(v.items[v.list], v.at, claim.Item{Text: "What it says", Evidence: v.some(true).text})
	return v
}

// some is a leaf that is a text, or a number.
func (v *review) some(text bool) leaf {
	for {
		if l := pick(v.rng, v.leaves...); (l.words != nil) == text {
			return l
		}
	}
}

func (v *review) item() *claim.Item { return &v.items[v.list][v.at] }

// summary is the model's answer as an object whose parts a mutation changes.
func (v *review) summary() object {
	o := object{{"type", `"summary"`}}
	for l, name := range listNames {
		items := []string{}
		for _, i := range v.items[l] {
			items = append(items, object{{"text", str(i.Text)}, {"evidence", str(i.Evidence)}}.String())
		}
		o = append(o, member{name, list(items)})
	}
	return o
}

// groundMutation is one way to write a summary, and what must become of it: for
// no reason it must be accepted. One of evidence, of the item in question, and
// shape, of the whole, is given; either may change the review.
type groundMutation struct {
	name     string
	want     writ.Reason
	evidence func(v *review) string
	shape    func(v *review) string
}

// fuzzGrounding runs n generated summaries through the gate.
func fuzzGrounding(g Gates, seed uint64, n int) *Section {
	return generate("grounding_fuzz", seed, groundStream, n, func(rng *rand.Rand, i int) (string, writ.Reason, string, answer) {
		m := groundMutations[i%len(groundMutations)]
		v := newReview(rng)
		if m.evidence != nil {
			e := m.evidence(v)
			v.item().Evidence = e
		}
		raw := v.summary().String()
		if m.shape != nil {
			raw = m.shape(v)
		}
		return m.name, m.want, fmt.Sprintf("%s %d %s", v.bytes, v.limit, raw), v.judge(g, m, raw)
	})
}

func (v *review) judge(g Gates, m groundMutation, raw string) answer {
	source, stop := claim.NewSource([]byte(v.bytes), pointer, v.limit)
	if stop != nil {
		return stopped(stop, claim.StageGrounding)
	}
	if shown, cut := strings.CutSuffix(source.Text(), claim.Marker); cut != (v.limit < len(v.text)) || cut != source.Truncated() ||
		!cut && shown != v.text || len(shown) > v.limit || !strings.HasPrefix(v.text, shown) || !utf8.ValidString(shown) {
		return answer{wrong: "another source text"}
	}
	got, stop := g.Ground(source, []byte(raw))
	if stop != nil {
		a := stopped(stop, claim.StageGrounding)
		if at := fmt.Sprintf("/%s/%d/evidence", listNames[v.list], v.at); a.wrong == "" && strings.HasPrefix(a.reason, "ground.") &&
			(len(stop.Rejection.Failures) != 1 || stop.Rejection.Failures[0].Pointer != at) {
			a.wrong = "not at the item in question"
		}
		return a
	}
	if m.want != "" {
		return answer{}
	}
	for l, items := range [3][]claim.Item{got.Bullets, got.Risks, got.Recommendations} {
		if len(items) != len(v.items[l]) {
			return answer{wrong: "other items"}
		}
		for i, it := range items {
			if want := v.items[l][i]; it.Text != want.Text || it.Evidence != want.Evidence {
				return answer{wrong: "other items"}
			}
			if !v.stands(it.Evidence, it.Quote) || !claim.VerifyRange(source, it.Evidence, it.Quote) {
				return answer{wrong: "another place"}
			}
		}
	}
	return answer{}
}

// stands reports whether a quote is where the evidence stands: in the canonical
// text, and in the record, where either says the same.
func (v *review) stands(evidence string, q claim.Quote) bool {
	start := strings.Index(v.text, evidence)
	if q.Start != start || q.End != start+len(evidence) || q.From < 0 || q.From >= q.To || q.To > len(v.bytes) {
		return false
	}
	for _, l := range v.leaves {
		if l.words != nil && strings.Contains(l.value, evidence) {
			var a, b string
			_ = json.Unmarshal([]byte(`"`+evidence+`"`), &a)
			return json.Unmarshal([]byte(`"`+v.bytes[q.From:q.To]+`"`), &b) == nil && a == b && q.Pointer == pointer+"/"+l.name
		}
	}
	return strings.HasPrefix(q.Pointer, pointer)
}

// quote is a mutation of the evidence of the item in question.
func quote(name string, want writ.Reason, evidence func(v *review) string) groundMutation {
	return groundMutation{name, want, evidence, nil}
}

// broken is a summary that is none, though all it quotes is true.
func broken(name string, want writ.Reason, shape func(v *review, o object, s string) string) groundMutation {
	return groundMutation{name, want, nil, func(v *review) string { o := v.summary(); return shape(v, o, o.String()) }}
}

// changed is a quote of words that were changed.
func changed(name string, f func(v *review, s string, w []string) string) groundMutation {
	return quote(name, writ.GroundUnquoted, func(v *review) string { l := v.some(true); return f(v, l.text, l.words) })
}

// Of validSummaries there are so many that a third of all must be accepted.
var groundMutations = slices.Concat(slices.Repeat(validSummaries, 3), brokenEvidence, brokenSummaries)

var validSummaries = []groundMutation{
	quote("valid_words", "", func(v *review) string { return v.some(true).text }),
	quote("valid_value", "", func(v *review) string { return v.some(v.rng.IntN(2) == 0).value }),
	quote("valid_members", "", func(v *review) string { return v.text[1 : len(v.text)-1] }),
	quote("valid_joined", "", func(v *review) string { l := v.some(true); return strings.Join(l.joint[:], "") }),
	quote("valid_before_a_cut", "", func(v *review) string {
		l := v.alone()
		v.limit = strings.Index(v.text, l.text) + len(l.text) + v.rng.IntN(2)
		return l.text
	}),
	{name: "valid_respelt", shape: func(v *review) string { return respell(v.rng, v.summary().String()) }},
}

// alone makes the item in question the only one, and returns a leaf for it.
func (v *review) alone() leaf {
	it := *v.item()
	v.items = [3][]claim.Item{}
	v.items[v.list], v.at = []claim.Item{it}, 0
	return v.some(true)
}

// brokenEvidence shows nothing of the source (INV-5).
var brokenEvidence = []groundMutation{
	quote("cropped_first_word", writ.GroundCropped, func(v *review) string { return v.some(true).text[1+v.rng.IntN(3):] }),
	quote("cropped_last_word", writ.GroundCropped, func(v *review) string {
		l := v.some(true)
		_, n := utf8.DecodeLastRuneInString(l.text)
		return l.text[:len(l.text)-n]
	}),
	quote("cropped_number", writ.GroundCropped, func(v *review) string {
		l := v.some(false)
		return `"` + l.name + `":` + l.value[:1+v.rng.IntN(len(l.value)-1)]
	}),
	quote("cropped_at_a_joint", writ.GroundCropped, func(v *review) string {
		l := v.some(true)
		return pick(v.rng, l.joint[0], l.joint[2], l.text+". "+l.joint[0])
	}),
	changed("words_swapped", func(v *review, s string, w []string) string { return w[1] + " " + w[0] + " " + w[2] }),
	changed("word_dropped", func(v *review, s string, w []string) string { return w[0] + " " + w[2] }),
	changed("word_added", func(v *review, s string, w []string) string { return w[0] + pick(v.rng, " not ", " never ") + w[1] }),
	changed("word_replaced", func(v *review, s string, w []string) string { return strings.Replace(s, w[1], word(v.rng, 11), 1) }),
	changed("ellipsis", func(v *review, s string, w []string) string {
		return w[0] + pick(v.rng, " … ", "...", " [...] ") + w[2]
	}),
	changed("rejoined", func(v *review, s string, w []string) string {
		return s + pick(v.rng, " ", ", ", `","`, "") + pick(v.rng, v.leaves...).name
	}),
	changed("member_rejoined", func(v *review, s string, w []string) string { return `"` + v.some(false).name + `":"` + s + `"` }),
	changed("white_space", func(v *review, s string, w []string) string {
		return w[0] + pick(v.rng, "  ", "\u00a0", "\n", "\t", "\u3000") + w[1]
	}),
	changed("marks_added", func(v *review, s string, w []string) string { return s + pick(v.rng, "!", " (sic)", "…", "**", "`") }),
	changed("case_changed", func(v *review, s string, w []string) string { return strings.ToUpper(s) }),
	changed("look_alike", func(v *review, s string, w []string) string { return lookAlike.Replace(s) }),
	changed("decomposed", func(v *review, s string, w []string) string {
		return strings.NewReplacer("ä", "a\u0308", "é", "e\u0301", "u", "u\u200b", "i", "i\u00ad").Replace(s)
	}),
	changed("of_another_record", func(v *review, s string, w []string) string { return newReview(v.rng).some(true).text }),
	changed("of_the_prose_beside", func(v *review, s string, w []string) string { return v.prose }),
	quote("behind_a_cut", writ.GroundUnquoted, func(v *review) string {
		l := v.alone()
		v.limit = strings.Index(v.text, l.text) + v.rng.IntN(len(l.text)-4)
		return l.text
	}),
	quote("with_the_mark_of_a_cut", writ.GroundMarker, func(v *review) string { return v.some(true).text + claim.Marker }),
	quote("name_alone", writ.GroundShort, func(v *review) string { return `"` + v.some(false).name + `":` }),
	quote("marks_alone", writ.GroundShort, func(v *review) string { return pick(v.rng, `{"`, `":`, `,"`, `}`) }),
}

var brokenSummaries = []groundMutation{
	broken("text_around", writ.SummarySyntax, func(v *review, o object, s string) string {
		return pick(v.rng, "```json\n"+s+"\n```", "Summary: "+s, s+"\nDone.", "\ufeff"+s, s+s, "["+s+"]", "null")
	}),
	broken("truncated", writ.SummarySyntax, func(v *review, o object, s string) string { return s[:v.rng.IntN(len(s))] }),
	broken("duplicate_key", writ.SummarySyntax, func(v *review, o object, s string) string {
		return within(s, pick(v.rng, `,"risks":[]`, `,"t\u0079pe":"summary"`))
	}),
	broken("extra_key", writ.SummaryUnknownKey, func(v *review, o object, s string) string {
		return append(o, member{pick(v.rng, "notes", "Bullets", "__proto__"), "[]"}).String()
	}),
	broken("key_dropped", writ.SummaryMissingKey, func(v *review, o object, s string) string { return o.without(v.rng.IntN(4)).String() }),
	broken("value_of_wrong_type", writ.SummaryValue, func(v *review, o object, s string) string {
		o[v.rng.IntN(4)].value = pick(v.rng, "null", `"x"`, "{}", "false")
		return o.String()
	}),
	broken("item_of_wrong_type", writ.SummaryValue, func(v *review, o object, s string) string {
		o[1].value = pick(v.rng, `["a bullet"]`, "[null]", `[{"text":"","evidence":"x"}]`, `[{"text":"x","evidence":1}]`)
		return o.String()
	}),
	broken("no_item", writ.SummaryValue, func(v *review, o object, s string) string {
		return `{"type":"summary","bullets":[],"risks":[],"recommendations":[]}`
	}),
	broken("too_many_items", writ.SummaryValue, func(v *review, o object, s string) string {
		o[1].value = list(slices.Repeat([]string{object{{"text", `"x"`}, {"evidence", str(v.some(true).text)}}.String()}, 201))
		return o.String()
	}),
}
