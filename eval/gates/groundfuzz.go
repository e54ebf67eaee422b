package gates

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
)

// review is a summary in the making: items with evidence that is quoted from
// one record, of which one mutation changes one, or the form around them.
type review struct {
	rng   *rand.Rand
	rec   *record
	limit int
	items [3][]item // by list
	list  int       // where the item stands that the mutation is about
	at    int
	style style
	// shape changes the finished summary, raw replaces its text.
	shape func(s *value)
	raw   func(s string) string
}

type item struct{ text, evidence string }

var listNames = [3]string{"bullets", "risks", "recommendations"}

type groundMutation struct {
	name string
	want []writ.Reason
	// evidence returns what the item in question quotes, "" to try again with
	// another record. Nil is verbatim.
	evidence func(v *review) string
	form     func(v *review)
}

// fuzzGrounding runs n generated summaries through the gate.
func fuzzGrounding(g Gates, seed uint64, n int) *Section {
	s := newSection("grounding_fuzz")
	s.Seed = &seed
	rng := rand.New(rand.NewPCG(seed, groundStream))
	h := sha256.New()
	for i := range n {
		m := groundMutations[i%len(groundMutations)]
		v := newReview(rng, m)
		raw := v.write()
		note(h, m.name, v.rec.bytes, strconv.Itoa(v.limit), raw)
		s.score(fmt.Sprintf("grounding_fuzz/%05d", i), m.name, expect(m.want), v.judge(g, m, raw))
	}
	s.Inputs = sum(h)
	return s.finish()
}

func newReview(rng *rand.Rand, m groundMutation) *review {
	for {
		v := &review{rng: rng, rec: newRecord(rng), limit: claim.SourceLimit, style: style{rng: rng}}
		quote := m.evidence
		if quote == nil {
			quote = verbatim
		}
		bad := quote(v)
		if bad == "" {
			continue
		}
		v.list = rng.IntN(3)
		for l := range v.items {
			for range rng.IntN(3) {
				v.items[l] = append(v.items[l], item{randomText(rng, 20) + ".", v.good()})
			}
		}
		v.at = rng.IntN(len(v.items[v.list]) + 1)
		v.items[v.list] = slices.Insert(v.items[v.list], v.at, item{"What it says: " + randomText(rng, 10), bad})
		if m.form != nil {
			m.form(v)
		}
		return v
	}
}

// good is evidence that is verbatim and within what the source shows.
func (v *review) good() string {
	for {
		if e := verbatim(v); e != "" && strings.Index(v.rec.text, e)+len(e) < v.limit {
			return e
		}
		if v.limit < len(v.rec.text) { // a short source: its first name and value
			first := v.rec.members[0]
			for _, m := range v.rec.members {
				if m.end < first.end {
					first = m
				}
			}
			return v.rec.of(first)
		}
	}
}

func (v *review) summary() *value {
	s := object("type", text("summary"))
	for l, name := range listNames {
		list := array()
		for _, i := range v.items[l] {
			list.items = append(list.items, object("text", text(i.text), "evidence", text(i.evidence)))
		}
		s.add(name, list)
	}
	if v.shape != nil {
		v.shape(s)
	}
	return s
}

// write returns the model's bytes.
func (v *review) write() string {
	st := v.style
	raw := st.gap() + v.summary().json(st) + st.gap()
	if v.raw != nil {
		raw = v.raw(raw)
	}
	return raw
}

func (v *review) judge(g Gates, m groundMutation, raw string) answer {
	source, stop := claim.NewSource([]byte(v.rec.bytes), pointer, v.limit)
	if stop != nil {
		return stopped(stop, claim.StageGrounding)
	}
	if wrong := v.wrongSource(source); wrong != "" {
		return answer{wrong: wrong}
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
	if len(m.want) > 0 {
		return answer{}
	}
	for l, items := range [3][]claim.Item{got.Bullets, got.Risks, got.Recommendations} {
		if len(items) != len(v.items[l]) {
			return answer{wrong: "other items"}
		}
		for i, it := range items {
			want := v.items[l][i]
			start := strings.Index(v.rec.text, want.evidence)
			end := start + len(want.evidence)
			q := it.Quote
			if it.Text != want.text || it.Evidence != want.evidence {
				return answer{wrong: "other items"}
			}
			if q.Start != start || q.End != end || q.From != v.rec.from[start] || q.To != v.rec.to[end-1] || !strings.HasPrefix(q.Pointer, pointer) {
				return answer{wrong: "another place"}
			}
			if !claim.VerifyRange(source, it.Evidence, q) {
				return answer{wrong: "a quote that is not found again"}
			}
		}
	}
	return answer{}
}

// wrongSource says how a source differs from the canonical text that was written
// beside the record.
func (v *review) wrongSource(s *claim.Source) string {
	shown, cut := strings.CutSuffix(s.Text(), claim.Marker)
	switch {
	case cut != s.Truncated() || cut != (v.limit < len(v.rec.text)):
		return "a truncation that does not show"
	case !cut && shown != v.rec.text:
		return "another source text"
	case cut && (len(shown) > v.limit || !strings.HasPrefix(v.rec.text, shown) || !utf8.ValidString(shown)):
		return "a source text cut wrongly"
	}
	return ""
}

// verbatim quotes the record in one of the ways that show something.
func verbatim(v *review) string {
	return pick(v.rng, someWords, someWords, wholeValue, oneMember)(v)
}

// run is a run of words of one string, at least least bytes long; text is the
// range from the first to the last of them.
type run struct {
	words []span
	text  span
}

func (v *review) run(least int) (run, bool) {
	for range 50 {
		ws := v.rec.words(pick(v.rng, v.rec.strings...))
		if len(ws) < 3 {
			continue
		}
		i := v.rng.IntN(len(ws) - 1)
		j := i + 2 + v.rng.IntN(len(ws)-i-1)
		if r := (run{ws[i:j], span{ws[i].start, ws[j-1].end}}); r.text.end-r.text.start >= least {
			return r, true
		}
	}
	return run{}, false
}

func someWords(v *review) string {
	r, _ := v.run(8)
	return v.rec.of(r.text)
}

// once is s if it stands in the text at one place only.
func (v *review) once(s string) string {
	if i := strings.Index(v.rec.text, s); i < 0 || i != strings.LastIndex(v.rec.text, s) {
		return ""
	}
	return s
}

// absent is s if it does not stand in the text.
func (v *review) absent(s string) string {
	if strings.Contains(v.rec.text, s) {
		return ""
	}
	return s
}

func wholeValue(v *review) string {
	s := pick(v.rng, pick(v.rng, v.rec.strings...), pick(v.rng, v.rec.numbers...))
	if v.rec.text[s.start-1] == '"' && v.rng.IntN(2) == 0 {
		s = span{s.start - 1, s.end + 1}
	}
	return v.once(v.rec.of(s))
}

func oneMember(v *review) string { return v.rec.of(pick(v.rng, v.rec.members...)) }

// member returns a member whose value is a number, and the value.
func (v *review) numberMember() (m, n span) {
	for {
		m, n = pick(v.rng, v.rec.members...), pick(v.rng, v.rec.numbers...)
		if m.end == n.end {
			return m, n
		}
	}
}

// changed makes evidence of a run of words by f; what it makes stands nowhere.
func changed(f func(v *review, s string) string) func(*review) string {
	return func(v *review) string {
		if s := someWords(v); s != "" {
			return v.absent(f(v, s))
		}
		return ""
	}
}

// between makes evidence of two neighbouring words of one string.
func between(f func(v *review, a, b, c string) string) func(*review) string {
	return func(v *review) string {
		r, ok := v.run(12)
		if !ok || len(r.words) < 3 {
			return ""
		}
		return v.absent(f(v, v.rec.of(r.words[0]), v.rec.of(r.words[1]), v.rec.of(r.words[2])))
	}
}

// cutWord takes a part of a word away, at its beginning or its end, and never
// the whole word.
func cutWord(rng *rand.Rand, w string, beginning bool) int {
	var at []int
	for i := range w {
		if i > 0 {
			at = append(at, i)
		}
	}
	n := pick(rng, at...)
	if beginning {
		return n
	}
	return len(w) - n
}

func ground(name string, reason writ.Reason, evidence func(*review) string) groundMutation {
	return groundMutation{name: name, want: []writ.Reason{reason}, evidence: evidence}
}

func shaped(name string, reason writ.Reason, shape func(v *review, s *value)) groundMutation {
	return groundMutation{name: name, want: []writ.Reason{reason}, form: func(v *review) {
		v.shape = func(s *value) { shape(v, s) }
	}}
}

func worded(name string, raw func(v *review, s string) string) groundMutation {
	return groundMutation{name: name, want: []writ.Reason{writ.SummarySyntax}, form: func(v *review) {
		v.raw = func(s string) string { return raw(v, s) }
	}}
}

// this is the item in question in the finished summary.
func (v *review) this(s *value) *value { return s.items[1+v.list].items[v.at] }

// The valid ones come up twice, so that a third of all must be accepted.
var groundMutations = slices.Concat(validSummaries, brokenEvidence, brokenSummaries, validSummaries)

var validSummaries = []groundMutation{
	{name: "valid_words", evidence: someWords},
	{name: "valid_whole_value", evidence: wholeValue},
	{name: "valid_member", evidence: oneMember},
	{name: "valid_members", evidence: func(v *review) string {
		a, b := pick(v.rng, v.rec.members...), pick(v.rng, v.rec.members...)
		if a.start > b.start || a.end > b.start {
			return ""
		}
		return v.rec.of(span{a.start, b.end})
	}},
	{name: "valid_document", evidence: func(v *review) string { return v.rec.text }},
	{name: "valid_across_an_escape", evidence: func(v *review) string {
		if s := someWords(v); strings.Contains(s, `\`) {
			return s
		}
		return ""
	}},
	{name: "valid_twice", form: func(v *review) { v.items[v.list] = append(v.items[v.list], v.items[v.list][v.at]) }},
	{name: "valid_many_items", form: func(v *review) {
		for len(v.items[0])+len(v.items[1])+len(v.items[2]) < 200 {
			l := v.rng.IntN(3)
			v.items[l] = append(v.items[l], item{"it says", v.good()})
		}
	}},
	{name: "valid_one_item", form: func(v *review) {
		it := v.items[v.list][v.at]
		v.items = [3][]item{}
		v.items[v.list] = []item{it}
	}},
	{name: "valid_any_text", form: func(v *review) { // the text beside a quote is the model's
		v.items[v.list][v.at].text = pick(v.rng, "It is paid.", "```", `"},{"`, strings.Repeat("x", 4<<10))
	}},
	{name: "valid_before_a_cut", evidence: func(v *review) string {
		r, ok := v.run(8)
		if !ok || r.text.end < 200 {
			return ""
		}
		v.limit = r.text.end + v.rng.IntN(min(40, len(v.rec.text)-r.text.end))
		return v.rec.of(r.text)
	}},
	{name: "valid_joined", evidence: func(v *review) string { return v.rec.of(pick(v.rng, v.rec.joined...).at) }},
	{name: "valid_beside_a_joint", evidence: func(v *review) string { // the words that the joint does not hold
		j := pick(v.rng, v.rec.joined...)
		_, last, _ := strings.Cut(j.after, " ")
		return last
	}},
	{name: "valid_every_spelling", form: func(v *review) { v.style = style{rng: v.rng, space: true, escape: true, shuffle: true} }},
}

// brokenEvidence is evidence that shows nothing of the source (INV-5).
var brokenEvidence = []groundMutation{
	ground("cropped_first_word", writ.GroundCropped, func(v *review) string {
		r, ok := v.run(24)
		if !ok {
			return ""
		}
		return v.once(v.rec.of(r.text)[cutWord(v.rng, v.rec.of(r.words[0]), true):])
	}),
	ground("cropped_last_word", writ.GroundCropped, func(v *review) string {
		r, ok := v.run(24)
		if !ok {
			return ""
		}
		s := v.rec.of(r.text)
		return v.once(s[:len(s)-cutWord(v.rng, v.rec.of(r.words[len(r.words)-1]), false)])
	}),
	ground("cropped_number", writ.GroundCropped, func(v *review) string {
		m, n := v.numberMember()
		return v.once(v.rec.text[m.start : n.end-1-v.rng.IntN(n.end-n.start-1)])
	}),
	ground("cropped_number_beginning", writ.GroundCropped, func(v *review) string {
		_, n := v.numberMember()
		return v.once(v.rec.text[n.start+1 : n.end])
	}),
	ground("cropped_escape", writ.GroundCropped, func(v *review) string {
		r, ok := v.run(24)
		if !ok {
			return ""
		}
		s := v.rec.of(r.text)
		if i := strings.LastIndexByte(s, '\\'); i >= 8 && s[i-1] != '\\' {
			return v.once(s[:i+1])
		}
		return ""
	}),
	ground("cropped_at_a_joint", writ.GroundCropped, func(v *review) string {
		j := pick(v.rng, v.rec.joined...)
		if j.before == "" {
			return v.once(j.after)
		}
		return v.once(pick(v.rng, j.before, j.before+j.glue, j.glue+j.after, j.after))
	}),
	ground("cropped_joint_of_a_member", writ.GroundCropped, func(v *review) string {
		j := pick(v.rng, v.rec.joined...)
		for _, m := range v.rec.members {
			if m.end == j.at.end+1 && j.before != "" {
				return v.rec.text[m.start : j.at.start+len(j.before)]
			}
		}
		return ""
	}),
	ground("letter_that_carries_a_name", writ.GroundShort, func(v *review) string {
		from := v.rec.letter.start - v.rng.IntN(2)
		for _, n := range v.rec.names {
			if n.start > v.rec.letter.end {
				return v.rec.text[from : n.end-v.rng.IntN(3)]
			}
		}
		return ""
	}),
	ground("changed_letter", writ.GroundUnquoted, changed(func(v *review, s string) string {
		b := []byte(s)
		b[v.rng.IntN(len(b))] = "qxjy"[v.rng.IntN(4)]
		return strings.ToValidUTF8(string(b), "q")
	})),
	ground("changed_case", writ.GroundUnquoted, changed(func(v *review, s string) string { return otherCase(v.rng, s) })),
	ground("changed_digit", writ.GroundUnquoted, func(v *review) string {
		m, n := v.numberMember()
		b := []byte(v.rec.of(m))
		for i := len(b) - 1 - v.rng.IntN(n.end-n.start); ; i++ {
			if b[i] >= '0' && b[i] <= '9' {
				b[i] = '0' + (b[i]-'0'+1+byte(v.rng.IntN(9)))%10
				return v.absent(string(b))
			}
		}
	}),
	ground("number_written_otherwise", writ.GroundUnquoted, func(v *review) string {
		m, n := v.numberMember()
		name, num := v.rec.text[m.start:n.start], v.rec.of(n)
		return v.absent(name + pick(v.rng, num+"0.0", num+"e0", "+"+num, num[:2]+","+num[2:], num[:2]+"_"+num[2:], `"`+num+`"`, " "+num))
	}),
	ground("words_swapped", writ.GroundUnquoted, between(func(v *review, a, b, c string) string { return b + " " + a + " " + c })),
	ground("word_dropped", writ.GroundUnquoted, between(func(v *review, a, b, c string) string { return a + " " + c })),
	ground("word_added", writ.GroundUnquoted, between(func(v *review, a, b, c string) string {
		return a + " " + b + pick(v.rng, " not ", " never ", " no ") + c
	})),
	ground("word_replaced", writ.GroundUnquoted, between(func(v *review, a, b, c string) string { return a + " " + word(v.rng, 12) + " " + c })),
	ground("ellipsis", writ.GroundUnquoted, between(func(v *review, a, b, c string) string { return a + pick(v.rng, " … ", "...", " [...] ") + c })),
	ground("rejoined", writ.GroundUnquoted, func(v *review) string {
		a, ok := v.run(8)
		b, ok2 := v.run(8)
		if !ok || !ok2 {
			return ""
		}
		return v.absent(v.rec.of(a.text) + pick(v.rng, " ", "", ", ", `","`, "\n") + v.rec.of(b.text))
	}),
	ground("member_rejoined", writ.GroundUnquoted, func(v *review) string {
		n, m := pick(v.rng, v.rec.names...), pick(v.rng, v.rec.members...)
		whole := v.rec.of(m)
		return v.absent(v.rec.of(n) + whole[strings.IndexByte(whole, ':')+1:])
	}),
	ground("white_space", writ.GroundUnquoted, changed(func(v *review, s string) string {
		return strings.Replace(s, " ", pick(v.rng, "  ", "\u00a0", "\n", "\t", "", " \u200b"), 1)
	})),
	ground("white_space_of_json", writ.GroundUnquoted, func(v *review) string {
		m := oneMember(v)
		i := strings.IndexByte(m, ':')
		return v.absent(pick(v.rng, m[:i]+": "+m[i+1:], m[:i]+" :"+m[i+1:], m[:i]+":\n"+m[i+1:]))
	}),
	ground("quotes_added", writ.GroundUnquoted, changed(func(v *review, s string) string {
		q := pick(v.rng, "**", "`", "'", "“", "> ", "- ")
		return q + s + q
	})),
	ground("full_stop_added", writ.GroundUnquoted, changed(func(v *review, s string) string { return s + pick(v.rng, ".", "!", " (sic)", "…") })),
	ground("escape_resolved", writ.GroundUnquoted, func(v *review) string {
		s := someWords(v)
		if !strings.Contains(s, `\`) {
			return ""
		}
		return v.absent(strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`).Replace(s))
	}),
	ground("look_alike", writ.GroundUnquoted, changed(func(v *review, s string) string { return lookAlike.Replace(s) })),
	ground("decomposed", writ.GroundUnquoted, changed(func(v *review, s string) string {
		return strings.NewReplacer("ä", "a\u0308", "é", "e\u0301").Replace(s)
	})),
	ground("invisible", writ.GroundUnquoted, changed(func(v *review, s string) string {
		r := []rune(s)
		return string(slices.Insert(r, 1+v.rng.IntN(len(r)-1), pick(v.rng, '\u200b', '\u00ad', '\u2060', '\ufe0f')))
	})),
	ground("of_another_record", writ.GroundUnquoted, func(v *review) string {
		other := &review{rng: v.rng, rec: newRecord(v.rng)}
		return v.absent(verbatim(other) + " ")
	}),
	ground("of_the_prose_beside", writ.GroundUnquoted, func(v *review) string { return v.absent(pick(v.rng, v.rec.prose...)) }),
	ground("invented", writ.GroundUnquoted, func(v *review) string {
		return v.absent(word(v.rng, 7) + " " + word(v.rng, 5) + " " + strconv.Itoa(v.rng.IntN(1e6)))
	}),
	ground("behind_a_cut", writ.GroundUnquoted, func(v *review) string {
		r, ok := v.run(8)
		if !ok || r.text.start < 200 {
			return ""
		}
		v.limit = r.text.start - v.rng.IntN(20) + v.rng.IntN(8)
		return v.rec.of(r.text)
	}),
	ground("with_the_mark_of_a_cut", writ.GroundMarker, func(v *review) string {
		return pick(v.rng, someWords(v)+claim.Marker, claim.Marker[1:], "… "+claim.Marker[1:])
	}),
	ground("name_alone", writ.GroundShort, func(v *review) string { return v.rec.of(pick(v.rng, v.rec.names...)) }),
	ground("one_short_word", writ.GroundShort, func(v *review) string {
		r, ok := v.run(12)
		if !ok {
			return ""
		}
		w := pick(v.rng, r.words...)
		if w.end-w.start >= 8 {
			return ""
		}
		return v.once(v.rec.of(w))
	}),
	ground("marks_alone", writ.GroundShort, func(v *review) string { return pick(v.rng, `{"`, `":`, `,"`, `}`) }),
	{name: "one_bad_of_many", want: one(writ.GroundUnquoted), evidence: changed(func(v *review, s string) string { return s + " " + word(v.rng, 13) }), form: func(v *review) {
		for range 20 {
			v.items[v.list] = append(v.items[v.list], item{"it says", v.good()})
		}
	}},
}

// brokenSummaries are no summaries, though all they quote is true.
var brokenSummaries = []groundMutation{
	worded("fence", func(v *review, s string) string { return "```json\n" + s + "\n```" }),
	worded("text_around", func(v *review, s string) string {
		return pick(v.rng, "Summary: "+s, s+"\nDone.", "\ufeff"+s, s+s, "["+s+"]")
	}),
	worded("truncated", func(v *review, s string) string { return s[:1+v.rng.IntN(len(s)-1)] }),
	worded("duplicate_key", func(v *review, s string) string {
		return within(s, pick(v.rng, `,"risks":[]`, `,"bullets":[]`, `,"t\u0079pe":"summary"`))
	}),
	worded("bad_utf8", func(v *review, s string) string { return strings.Replace(s, `"summary"`, "\"summary\xff\"", 1) }),
	worded("not_json", func(v *review, s string) string {
		return pick(v.rng, "", "- a bullet", "null", "true", `"summary"`, "{}{}")
	}),
	shaped("too_deep", writ.SummarySyntax, func(v *review, s *value) { v.this(s).items[0] = array(array()) }),
	shaped("extra_key", writ.SummaryUnknownKey, func(v *review, s *value) {
		s.add(pick(v.rng, "notes", "Bullets", "__proto__", "source", "risk"), array())
	}),
	shaped("extra_key_of_item", writ.SummaryUnknownKey, func(v *review, s *value) {
		v.this(s).add(pick(v.rng, "quote", "Evidence", "confidence", ""), text("x"))
	}),
	shaped("key_of_other_case", writ.SummaryUnknownKey, func(v *review, s *value) {
		i := v.rng.IntN(4)
		s.names[i] = otherCase(v.rng, s.names[i])
	}),
	shaped("key_dropped", writ.SummaryMissingKey, func(v *review, s *value) { s.remove(v.rng.IntN(4)) }),
	shaped("key_of_item_dropped", writ.SummaryMissingKey, func(v *review, s *value) { v.this(s).remove(v.rng.IntN(2)) }),
	shaped("type_changed", writ.SummaryValue, func(v *review, s *value) {
		s.items[0] = pick(v.rng, text("Summary"), text("call_tool"), text(""), literal("null"), number(1))
	}),
	shaped("list_of_wrong_type", writ.SummaryValue, func(v *review, s *value) {
		s.items[1+v.rng.IntN(3)] = pick(v.rng, literal("null"), text("x"), object(), literal("false"))
	}),
	shaped("item_of_wrong_type", writ.SummaryValue, func(v *review, s *value) {
		s.items[1+v.list].items[v.at] = pick(v.rng, text("a bullet"), literal("null"), number(1), array())
	}),
	shaped("text_of_wrong_type", writ.SummaryValue, func(v *review, s *value) {
		v.this(s).items[0] = pick(v.rng, literal("null"), text(""), text(" \n"), number(1), literal("true"), text("\u200b"), text(strings.Repeat("x", 4<<10+1)))
	}),
	shaped("evidence_of_wrong_type", writ.SummaryValue, func(v *review, s *value) {
		v.this(s).items[1] = pick(v.rng, literal("null"), text(""), text("  "), number(12345678), literal("true"), text(strings.Repeat("x", 4<<10+1)))
	}),
	shaped("no_item", writ.SummaryValue, func(v *review, s *value) {
		for i := 1; i < 4; i++ {
			s.items[i] = array()
		}
	}),
	shaped("too_many_items", writ.SummaryValue, func(v *review, s *value) {
		l := s.items[1+v.list]
		for len(l.items) < 201 {
			l.items = append(l.items, l.items[v.at])
		}
	}),
}
