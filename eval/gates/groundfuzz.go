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

// canonical writes the characters of a text as RFC 8785 does.
var canonical = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func newReview(rng *rand.Rand) *review {
	v := &review{rng: rng, limit: claim.SourceLimit}
	o := object{}
	for i := range 6 + rng.IntN(4) {
		l := leaf{name: word(rng, 7) + strconv.Itoa(i)}
		if i%3 == 0 {
			l.value = pick(rng, "", "-") + strconv.Itoa(10_000+rng.IntN(1_000_000)) + pick(rng, "", ".25")
			o = append(o, member{l.name, l.value})
		} else {
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
			l.value = canonical.Replace(b.String())
			o = append(o, member{l.name, `"` + l.value + `"`})
		}
		v.leaves = append(v.leaves, l)
	}
	v.prose = word(rng, 7) + " " + word(rng, 9) + " " + word(rng, 8)
	v.text = o.String()
	v.bytes = `{"content":[{"type":"text","text":` + str(v.prose) + `}],"structuredContent":` + pick(rng, v.text, respell(rng, v.text)) + `}`
	for l := range v.items {
		for range rng.IntN(3) {
			v.items[l] = append(v.items[l], claim.Item{Text: pick(rng, texts...), Evidence: v.some(true).value})
		}
	}
	v.list = rng.IntN(3)
	v.at = rng.IntN(len(v.items[v.list]) + 1)
	v.items[v.list] = slices.Insert(v.items[v.list], v.at, claim.Item{Text: "What it says", Evidence: v.some(true).value})
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

// cut makes the item in question the only one, and ends what is shown of the
// record a little after a leaf's text, or within it. It returns that text.
func (v *review) cut(after bool) string {
	it, l := v.items[v.list][v.at], v.some(true)
	v.items = [3][]claim.Item{}
	v.items[v.list], v.at = []claim.Item{it}, 0
	if v.limit = strings.Index(v.text, l.value) + v.rng.IntN(len(l.value)-4); after {
		v.limit = strings.Index(v.text, l.value) + len(l.value) + v.rng.IntN(2)
	}
	return l.value
}

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

// fuzzGrounding runs n generated summaries through the gate.
func fuzzGrounding(g Gates, seed uint64, n int) *Section {
	return generate("grounding_fuzz", seed, groundStream, n, groundMutations, func(rng *rand.Rand, _ int) *review { return newReview(rng) },
		func(v *review, m *mutation[*review], raw string) (string, answer) {
			return fmt.Sprintf("%s %d", v.bytes, v.limit), v.judge(g, m.want, raw)
		})
}

func (v *review) judge(g Gates, want writ.Reason, raw string) answer {
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
	if want != "" {
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
			if !v.stands(it.Evidence, it.Quote) || !again(source, it) {
				return answer{wrong: "another place"}
			}
		}
	}
	return answer{}
}

// again reports whether what an item quotes is found again, as an audit finds it.
func again(source *claim.Source, it claim.Item) bool {
	got, no := source.Find(it.Evidence)
	return no == "" && got == it.Quote
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
func quote(name string, want writ.Reason, evidence func(v *review) string) mutation[*review] {
	return mutation[*review]{name, want, func(v *review) string {
		e := evidence(v) // may make it another item
		v.items[v.list][v.at].Evidence = e
		return v.summary().String()
	}}
}

// changed quotes what was changed in a text of the record.
func changed(name string, f func(v *review, s string, w []string) string) mutation[*review] {
	return quote(name, writ.GroundUnquoted, func(v *review) string { l := v.some(true); return f(v, l.value, l.words) })
}

// Of valid summaries there are so many that a third of all must be accepted.
var groundMutations = slices.Concat(slices.Repeat([]mutation[*review]{
	quote("valid_value", "", func(v *review) string { return v.some(v.rng.IntN(2) == 0).value }),
	quote("valid_part", "", func(v *review) string { return pick(v.rng, v.some(true).words[1], v.text[1:len(v.text)-1]) }),
	quote("valid_before_a_cut", "", func(v *review) string { return v.cut(true) }),
	{"valid_respelt", "", func(v *review) string { return respell(v.rng, v.summary().String()) }},
}, 2), []mutation[*review]{
	quote("cropped_word", writ.GroundCropped, func(v *review) string {
		s := v.some(true).value
		_, n := utf8.DecodeLastRuneInString(s)
		return pick(v.rng, s[1+v.rng.IntN(3):], s[:len(s)-n])
	}),
	quote("cropped_number", writ.GroundCropped, func(v *review) string {
		l := v.some(false)
		return `"` + l.name + `":` + l.value[:1+v.rng.IntN(len(l.value)-1)]
	}),
	changed("word_dropped", func(v *review, s string, w []string) string {
		return w[0] + pick(v.rng, " ", " … ", "...", " [...] ") + w[2]
	}),
	changed("word_added", func(v *review, s string, w []string) string { return w[0] + pick(v.rng, " not ", " never ") + w[1] }),
	changed("word_replaced", func(v *review, s string, w []string) string {
		return strings.Replace(s, w[1], pick(v.rng, word(v.rng, 11), w[0]), 1)
	}),
	changed("rejoined", func(v *review, s string, w []string) string {
		return pick(v.rng, w[0]+pick(v.rng, " ", ", ", `","`, "")+pick(v.rng, v.leaves...).name, `"`+v.some(false).name+`":"`+s+`"`)
	}),
	changed("white_space", func(v *review, s string, w []string) string {
		return w[0] + pick(v.rng, "  ", "\u00a0", "\n", "\t", "\u3000") + w[1]
	}),
	changed("marks_added", func(v *review, s string, w []string) string { return s + pick(v.rng, "!", " (sic)", "…", "**", "`") }),
	changed("look_alike", func(v *review, s string, w []string) string {
		return pick(v.rng, strings.ToUpper(s), lookAlike.Replace(s), strings.NewReplacer("ä", "a\u0308", "é", "e\u0301", "u", "u\u200b", "i", "i\u00ad").Replace(s))
	}),
	changed("of_elsewhere", func(v *review, s string, w []string) string {
		return pick(v.rng, newReview(v.rng).some(true).value, v.prose)
	}),
	quote("behind_a_cut", writ.GroundUnquoted, func(v *review) string { return v.cut(false) }),
	quote("with_the_mark_of_a_cut", writ.GroundMarker, func(v *review) string { return v.some(true).value + claim.Marker }),
	quote("too_short", writ.GroundShort, func(v *review) string { return pick(v.rng, `"`+v.some(false).name+`":`, `{"`, `":`, `,"`, `}`) }),
	{"truncated", writ.SummarySyntax, func(v *review) string { s := v.summary().String(); return s[:v.rng.IntN(len(s))] }},
	{"key_dropped", writ.SummaryMissingKey, func(v *review) string { return v.summary().without(v.rng.IntN(4)).String() }},
})
