package provenance

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

func typedIn(t interface{ Fatalf(string, ...any) }, turns ...string) *Ledger {
	l := NewLedger([32]byte{1}, Caps{})
	for i, text := range turns {
		p, err := l.PrepareTurn(Turn{Evidence: uint32(i + 1), Text: text})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := l.CommitTurn(p); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	return l
}

// What bounds a token (R6): one line a boundary, one a place that is none.
func TestTokens(t *testing.T) {
	for _, c := range []struct {
		text string
		yes  bool
	}{
		{`INV-100`, true}, {` INV-100 `, true}, {"a\tINV-100\nb", true}, {"a\u00a0INV-100\u3000b", true},
		{`pay INV-100.`, true}, {`pay INV-100, then`, true}, {`is it INV-100?`, true}, {`INV-100: pay`, true}, {`INV-100;`, true}, {`INV-100!`, true},
		{`"INV-100"`, true}, {`'INV-100'`, true}, {"`INV-100`", true}, {`“INV-100”,`, true}, {`«INV-100»`, true},
		{`(INV-100)`, true}, {`[INV-100]`, true}, {`{INV-100}`, true}, {`<INV-100>`, true}, {`("INV-100").`, true}, {`[x](INV-100)`, true},
		{`INV-1000`, false}, {`XINV-100`, false}, {`x-INV-100`, false}, {`INV-100-b`, false}, {`INV-100.5`, false}, {`INV-100,INV-200`, false},
		{`INV-100/x`, false}, {`/INV-100`, false}, {`INV-100's`, false}, {`f(INV-100)`, false}, {`INV-100(a)`, false}, {`a"INV-100"`, false},
		{`#INV-100`, false}, {`@INV-100`, false}, {`INV-100…`, false}, {`INV-100..`, false}, {`inv-100`, false}, {`INV-１00`, false}, {`IΝV-100`, false},
		{"INV-100\u200b", false}, {"\u202eINV-100", false}, {`INV -100`, false}, {`INV‑100`, false}, {`https://x/INV-100`, false},
		{`x=INV-100`, false}, {`to=INV-100`, false},
	} {
		_, r := typedIn(t, c.text).Typed(Query{Value: strictjson.Of([]byte(`"INV-100"`)), Authority: true})
		if (r == "") != c.yes || r != "" && r != writ.ProvenanceUnseen {
			t.Errorf("R6 %q: %q, want a token: %v", c.text, r, c.yes)
		}
	}
}

// What the user gives a value to says what it is, where it is a word of the argument's, as a word before
// it does: of a link's parameter, of code and of a log's other fields it is no token.
func TestGiven(t *testing.T) {
	for _, c := range []struct {
		text string
		yes  bool
	}{
		{`id=INV-100`, true}, {`(ID='INV-100')`, true}, {`id="INV-100",`, true}, {`case_id=INV-100.`, true}, {`with id=INV-100 and`, true}, {`ID=#INV-100`, true},
		{`to=INV-100`, false}, {`level=info id_of=INV-100`, false}, {`xid=INV-100`, false}, {`ID =INV-100`, false}, {`id==INV-100`, false}, {`id!=INV-100`, false},
		{`x=id=INV-100`, false}, {`id=INV-100=y`, false}, {`id=INV-100&y`, false}, {`-id=INV-100`, false}, {`2id=INV-100`, false}, {`a/id=INV-100`, false}, {`?id=INV-100`, false},
		{`x'id=INV-100`, false}, {`https://h/p?id=INV-100`, false}, {`id=x INV-10`, false},
		// a line of a log: what its other fields are, a stranger chose
		{`ts=1 id=INV-100`, false}, {`id=INV-100 src=x`, false}, {"msg=\"no entry\" id=INV-100", false}, {`id="INV-100" 2.x-y=`, false}, {"a=b \t id=INV-100.", false},
		{`id=INV-100, src=x`, false}, {"a=b\nid=INV-100\nc=d", true}, {`= id=INV-100 =`, true}, {`"a b" id=INV-100`, true}, {"a=\"b\nc\" id=INV-100", true},
	} {
		_, r := typedIn(t, c.text).Typed(Query{Value: strictjson.Of([]byte(`"INV-100"`)), Authority: true, Words: []string{"id", "case_id", strings.Repeat("x", 65)}})
		if (r == "") != c.yes || r != "" && r != writ.ProvenanceUnseen {
			t.Errorf("R6 %q: %q, want it to be what he means: %v", c.text, r, c.yes)
		}
	}
}

// What of a turn is not the user's own, and cannot be made to look so from
// within (P06): want is what remains.
func TestNotHisOwn(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a b", "a b"},
		{"a\n> b\n\nc", "a|c"}, {"a\n> b\r\n \t\r\nc", "a|c"},
		// What follows a quoted line belongs to it, up to an empty one.
		{"a\n> b\nc\n- c\n\nd", "a|d"}, {"a\n> b\n> b\nc", "a"}, {"a\n> b\n\nc\n> d\ne\n\nf", "a|c|f"},
		// Whoever is quoted chooses every break but a line feed.
		{"a\r> b\rc\n\nd", "a|d"}, {"a\u2028 \t> b\u2028c\n\nd", "a|d"},
		{"a\n> b\r\rc\n\nd", "a|d"}, {"a\n> b\v\vc\n\nd", "a|d"}, {"a\n> b\f\fc\n\nd", "a|d"}, {"a\n> b\u0085\u0085c\n\nd", "a|d"},
		{"a\n> b\u2028\u2028c\n\nd", "a|d"}, {"a\n> b\u2029\u2029c\n\nd", "a|d"}, {"a\n> b\n\u00a0\nc\n\nd", "a|d"},
		{"a\n- > b\n\nc", "a|c"}, {"a\n 12. * > b\n\nc", "a|c"}, {"a\n\u200b> b\n\nc", "a|c"}, {"a\n＞ b\n\nc", "a|c"}, {"a\n&gt; b\n\nc", "a|c"},
		{"a\n- b > c\nd", "a - b > c d"},
		{"a > b", "a > b"},
		{"a\n```\nb\n```\nc", "a|c"},
		{"a\n- ```go\n  b\n  ```\nc", "a -|c"},
		{"a\n~~~\nb", "a"},
		{"a\n```\nb\n```\nc\n```\nd\n```\ne", "a|e"},
		{"a <doc> b </doc> c", "a|c"},
		{"a <doc> b </doc> c </DOC > d", "a|d"},
		{"a <doc t=\"<x\"> b </doc> c", "a|c"},
		{"a <doc\nt=\">\"> b </doc> c", "a|c"},
		{"a <doc>b", "a"}, {"a <doc>\nb", "a"}, {"<doc> b", ""},
		{"a </doc> b <doc>c", "a </doc> b"},
		{"a <dôc> b </dôc> c", "a|c"}, {"a <Док> b </док> c", "a|c"},
		{"a <br> b <hr/> <x y /> c", "a <br> b <hr/> <x y /> c"},
		{"a <kim@corp.example> b <INC-7> c", "a <kim@corp.example> b <INC-7> c"},
		{"a <!-- b --> c", "a|c"}, {"a <!-- b", "a"}, {"a <!-- b --> c <!-- d --> e", "a|e"}, {"a <!-- b --> c <!-- d", "a"},
		{"a <x><y> b </x> c </y> d", "a|d"},
	} {
		own, rest := split(c.text)
		got := strings.Join(strings.FieldsFunc(own, func(r rune) bool { return r == 0 }), "|")
		got = strings.ReplaceAll(strings.Join(strings.Fields(strings.ReplaceAll(got, "|", " | ")), " "), " | ", "|")
		if got = strings.TrimSuffix(got, " |"); got != c.want {
			t.Errorf("R6 %q: %q, want %q", c.text, got, c.want)
		}
		if len(own) != len(c.text) || len(rest) != len(c.text) {
			t.Errorf("%q: places moved", c.text)
		}
	}
}

// The latest turn that has the value is named, in bytes; a lapsed one is not.
func TestTurnsLapse(t *testing.T) {
	l := typedIn(t, "ä INV-100", "x INV-100 INV-100", "no")
	q, r := l.Typed(Query{Value: strictjson.Of([]byte(`"INV-100"`))})
	if r != "" || q != (Quote{2, 2, 9}) {
		t.Errorf("%+v %q", q, r)
	}
	before := l.Bytes()
	l.LapseTurns()
	if _, r := l.Typed(Query{Value: strictjson.Of([]byte(`"INV-100"`))}); r != writ.ProvenanceUnseen || l.Turns() != 0 {
		t.Errorf("lapsed: %q", r)
	}
	if l.Bytes() != before {
		t.Error("D04: lapsed turns gave their room back, and it could be filled again and again")
	}
}

// D04: turns are bounded, one and all.
func TestTurnBounds(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{})
	for _, text := range []string{"", "\xff", "a\x00", strings.Repeat("a", MaxTurn+1)} {
		if _, err := l.PrepareTurn(Turn{Evidence: 1, Text: text}); !errors.Is(err, ErrTurn) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
	big := strings.Repeat("a", MaxTurn)
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		var p *PendingTurn
		if p, err = l.PrepareTurn(Turn{Evidence: 1, Text: big}); err == nil {
			err = l.CommitTurn(p)
		}
	}
	if !errors.Is(err, ErrFull) || n != maxTurns/MaxTurn+1 {
		t.Errorf("%d turns: %v", n, err)
	}
}

// The plain model reads a turn line by line and looks for a value with regular
// expressions written from R6.
const (
	plainMark = "[\"'`´“”„‟‘’‚‛«»‹›()\\[\\]{}<>]"
	plainLeft = `(?:^|\s|(?:^|[\s.,;:!?]|` + plainMark + `)` + plainMark + `)`
	plainEnd  = `(?:$|\s|(?:[.,;:]|[!?]+)(?:$|\s)|` + plainMark + `(?:$|[\s.,;:!?]|` + plainMark + `))`
)

// plainTag finds what may be a mark that a line drew by chance.
var plainTag = regexp.MustCompile(`<[/!]?\pL|"{3}|'{3}`)

// plainQuote is a quoted line, as one of a list of the words drawn.
var plainQuote = regexp.MustCompile(`^(?:(?:[#—]|\(?ä[.)])[ \t]+)*>`)

func plainHas(text, value string) bool {
	re := regexp.MustCompile(`^` + regexp.QuoteMeta(value) + plainEnd)
	left := regexp.MustCompile(plainLeft + `$`)
	for i := range text {
		if strings.HasPrefix(text[i:], value) && re.MatchString(text[i:]) && left.MatchString(text[:i]) {
			return true
		}
	}
	return false
}

func TestTypedAgainstModel(t *testing.T) {
	words := []string{"bobby", "bobby-2", "mail", "kim@acme.example", "the old house", "old", ",", ".", "!", "'", `"`, "(", ")", "<", ">", "#", "/", " ", " ", "\t", "ä", "—"}
	values := []string{"bobby", "bobby-2", "kim@acme.example", "the old house", "old house", "old", "mail", "mail bobby", "acme"}
	yes, no := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var lines, own []string
		tagged, quoted := false, false
		for range rapid.IntRange(1, 6).Draw(t, "lines") {
			var b strings.Builder
			for range rapid.IntRange(1, 8).Draw(t, "words") {
				b.WriteString(rapid.SampledFrom(words).Draw(t, "word"))
			}
			line := strings.TrimLeft(b.String(), " \t") // what is indented has cases of its own
			tagged = tagged || plainTag.MatchString(line)
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				lines = append(lines, " > "+line)
				quoted = true
			case 1:
				lines = append(lines, "<note>", line, "</note>")
				quoted = quoted && line != ""
			default:
				lines = append(lines, line)
				quoted = line != "" && (quoted || plainQuote.MatchString(line))
				if !quoted {
					own = append(own, line)
				}
			}
		}
		text := strings.Join(lines, "\n")
		if text == "" || strings.Count(text, "<note>") > 1 || tagged {
			return // what stands between two blocks of one name is nobody's; tags have cases of their own
		}
		l := typedIn(t, text)
		for _, v := range values {
			want := false
			for _, line := range own {
				want = want || plainHas(line, v)
			}
			q, r := l.Typed(Query{Value: strictjson.StringOf(v), Authority: true})
			if (r == "") != want {
				t.Fatalf("%q in %q: %q, the model says %v", v, text, r, want)
			}
			if want {
				yes++
				if text[q.Start:q.End] != v {
					t.Fatalf("%q in %q: at %+v", v, text, q)
				}
			} else {
				no++
			}
		}
	})
	if yes == 0 || no == 0 {
		t.Errorf("the draw never meets both answers: %d, %d", yes, no)
	}
}

// What is found is the value, stands between ends of tokens, and nowhere in a
// quoted line; finding it twice gives the same place.
func FuzzTyped(f *testing.F) {
	f.Add("mail kim@ACME.example now", `"kim@acme.example"`, "email")
	f.Add("> quoted INV-1\n```\nx\n```\n<a>b</a> file 13", `13`, "integer")
	f.Add("DE89 3704 0044 0532 0130 00, +49 170 123 45 67", `"DE89370400440532013000"`, "iban")
	f.Add("/srv/a/ https://x.example:443/%41", `"https://x.example/A"`, "url")
	f.Fuzz(func(t *testing.T, text, raw, typ string) {
		if strictjson.Check([]byte(raw), strictjson.Request) != nil || typ != "" && !slices.Contains(types, Type(typ)) {
			return
		}
		l := NewLedger([32]byte{1}, Caps{})
		p, err := l.PrepareTurn(Turn{Evidence: 1, Text: text})
		if err != nil {
			return
		}
		if l.CommitTurn(p) != nil {
			t.Fatal("a turn that was prepared does not fit")
		}
		q := Query{Value: strictjson.Of([]byte(raw)), Type: Type(typ), Authority: true, Words: []string{"file"}}
		at, r := l.Typed(q)
		if again, r2 := l.Typed(q); again != at || r2 != r {
			t.Fatal("two answers")
		}
		if r != "" {
			return
		}
		found := text[at.Start:at.End]
		value, isText := strictjson.Text([]byte(raw))
		same := isText && found == value
		same = same || typ != "" && Equal(Type(typ), strictjson.StringOf(found), strictjson.Of([]byte(raw)))
		same = same || typ == "" && Equal(Decimal, strictjson.StringOf(found), strictjson.Of([]byte(raw)))
		if !same {
			t.Fatalf("%q is not %s", found, raw)
		}
		if line := text[strings.LastIndexByte(text[:at.Start], '\n')+1:]; strings.HasPrefix(strings.TrimLeft(line, " \t"), ">") {
			t.Fatalf("%q stands in a quoted line", found)
		}
		if !slices.ContainsFunc(OwnWords(text), func(own string) bool { return strings.Contains(own, found) }) {
			t.Fatalf("%q stands nowhere in the user's own words", found)
		}
		if SmallSpace(Type(typ), strictjson.Of([]byte(raw))) && !regexp.MustCompile(`(?i)file[ \t]+#?$`).MatchString(text[:at.Start]) {
			t.Fatalf("R8: %q is of small space and nothing names it", found)
		}
	})
}

// D04, Q13: no text makes reading it slow; a quadratic one would not end here.
func TestReadingIsBounded(t *testing.T) {
	for _, piece := range []string{"(", "a ", "+1 ", "AB12 ", "a@", "1.", "'\"", "/a", "<a>", "> ", "`", "http://",
		">\n", "[a](", "***", "- a\n", "- ", "1. ", "1) a\n\n", "    a\n\n", "\n", "\r", "x\n", "a <b> ", "a <b c=\"", "<b c>", "<a></a>", "<!--", "![", "[quote]", "[a][/a]",
		"On 1\n", "From:\n", "-----a", "&gt;", "&#62", "\u00a0", "\u200b", "-\n ", "=\n", "\t", " \n"} {
		t.Run(piece, func(t *testing.T) { typedIn(t, strings.Repeat(piece, MaxTurn/len(piece))) })
	}
	stairs := ""
	for i := 0; len(stairs) < MaxTurn-1<<10; i++ {
		stairs += strings.Repeat(" ", i) + "- - - - - - - - - - - - - - a\n"
	}
	names := ""
	for i := 0; len(names) < MaxTurn-10; i++ {
		names += fmt.Sprintf("<a%x>", i)
	}
	for i, text := range []string{stairs, names} {
		t.Run(fmt.Sprint(i), func(t *testing.T) { typedIn(t, text) })
	}
}

// Reading and asking stay cheap whatever the text (D04).
func BenchmarkTypedFlood(b *testing.B) {
	l := NewLedger([32]byte{1}, Caps{})
	p, _ := l.PrepareTurn(Turn{Evidence: 1, Text: strings.Repeat("aaa ", MaxTurn/4)})
	l.CommitTurn(p)
	raw := fmt.Appendf(nil, `"%sb"`, strings.Repeat("aaa ", 50))
	for b.Loop() {
		l.Typed(Query{Value: strictjson.Of(raw)})
	}
}
