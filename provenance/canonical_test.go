package provenance

import (
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// load reads a case file strictly.
func load(t testing.TB, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Load(b, into, yaml.WithKnownFields(), yaml.WithUniqueKeys())
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

type formCase struct {
	ID   string
	Type Type
	JSON string
	Want string
	Sent *bool
	Why  writ.Reason
}

func TestCanonical(t *testing.T) {
	var cases []formCase
	load(t, "testdata/canonical.yaml", &cases)
	for _, c := range cases {
		t.Run(c.ID+" "+string(c.Type)+" "+c.JSON, func(t *testing.T) {
			if err := strictjson.Check([]byte(c.JSON), strictjson.Limits{}); err != nil {
				t.Fatal(err)
			}
			got, sent, why := Canonical(c.Type, strictjson.Of([]byte(c.JSON)))
			want := c.Why == "" && (c.Sent == nil || *c.Sent)
			if got != c.Want || sent != want || why != c.Why {
				t.Errorf("got %q, already %v, %q; want %q, %v, %q", got, sent, why, c.Want, want, c.Why)
			}
		})
	}
}

// Every declared type has rows above.
func TestTypes(t *testing.T) {
	var cases []formCase
	load(t, "testdata/canonical.yaml", &cases)
	rows := map[Type]int{}
	for _, c := range cases {
		rows[c.Type]++
	}
	for _, typ := range append(Types(), Untyped) {
		if rows[typ] == 0 {
			t.Errorf("type %q has no rows", typ)
		}
	}
	if slices.Contains(Types(), "nonsense") || rows["nonsense"] == 0 {
		t.Error("what is no type has no rows, or is one")
	}
}

func TestSmallSpace(t *testing.T) {
	var cases []struct {
		Type  Type
		JSON  string
		Small bool
	}
	load(t, "testdata/small.yaml", &cases)
	for _, c := range cases {
		if got := SmallSpace(c.Type, strictjson.Of([]byte(c.JSON))); got != c.Small {
			t.Errorf("P08: SmallSpace(%q, %s) = %v", c.Type, c.JSON, got)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		a, b string
		want bool
	}{
		{Untyped, `100`, `1e2`, true},
		{Untyped, `100`, `"100"`, false}, // P13
		{Untyped, `9007199254740993`, `9007199254740992`, false},
		{Untyped, `true`, `"true"`, false},
		{Untyped, `null`, `"null"`, false},
		{Untyped, `[]`, `{}`, false},
		{Untyped, `"é"`, `"e\u0301"`, false}, // P12
		{Untyped, `"a"`, `"\u0061"`, true},
		{ID, `13`, `"13"`, true},
		{Decimal, `"100.0"`, `1e2`, true},
		{Email, `"a@EXAMPLE.com"`, `"a@example.com"`, true},
		{Email, `"x"`, `"x"`, false}, // no email: equals nothing
	} {
		if got := Equal(c.typ, strictjson.Of([]byte(c.a)), strictjson.Of([]byte(c.b))); got != c.want {
			t.Errorf("Equal(%q, %s, %s) = %v", c.typ, c.a, c.b, got)
		}
	}
}

func TestCheckText(t *testing.T) {
	for raw, want := range map[string]writ.Reason{
		`"plain text, ünïcode, 日本"`: "",
		`5`:                         "",
		`{}`:                        "",
		`"pay\u200bpal"`:            writ.FormInvisible, // P12
		`"a\u202eb"`:                writ.FormInvisible,
		`"a\u2066b"`:                writ.FormInvisible,
		`"a\udb40\udc41"`:           writ.FormInvisible, // U+E0041, a tag
		`"a\ufe0f"`:                 writ.FormInvisible,
		`"a\u00ad"`:                 writ.FormInvisible,
		`"a\u3164"`:                 writ.FormInvisible,
		`"a\u2028"`:                 writ.FormInvisible,
		`"a\tb"`:                    writ.FormInvisible,
		`"a\nb"`:                    writ.FormInvisible,
		`"a\u0000"`:                 writ.FormInvisible,
		`"a\u007f\u0085"`:           writ.FormInvisible,
		`"\uffff"`:                  writ.FormInvisible,
		`"not closed`:               writ.FormNotCanonical,
	} {
		if got := CheckText(strictjson.Of([]byte(raw))); got != want {
			t.Errorf("P12: CheckText(%s) = %q, want %q", raw, got, want)
		}
	}
}

// D04: no type makes a long value slow to refuse.
func TestLongValues(t *testing.T) {
	for _, unit := range []string{"ж", "a", "%41", "/a", "a.", "1", "字", "e\u0301"} {
		long := strings.Repeat(unit, 30_000)
		for _, s := range []string{long, "a@" + long, "https://" + long, "https://a.example/" + long, "/" + long} {
			raw := strictjson.StringOf(s)
			for _, typ := range []Type{Untyped, ID, Integer, Decimal, Email, Host, URL, Path, Name, Phone, IBAN, Time} {
				form, sent, why := Canonical(typ, raw)
				if (typ == Email || typ == Host || typ == Integer || typ == Decimal) && why == "" || why != "" && (sent || form != "") {
					t.Errorf("%s of %q…: %q", typ, s[:20], why)
				}
			}
		}
	}
}

func TestMixedScript(t *testing.T) {
	for s, want := range map[string]bool{
		"paypal": false, "pаypal": true, "отчёт": false, "日本のカタカナ": false, "漢字abc": false,
		"한글漢字": false, "漢字ж": true, "αb": true, "123-_": false, "ünïcode": false, "a\u0378": true, "café…": false,
	} {
		if mixedScript(s) != want {
			t.Errorf("P12: mixedScript(%q) = %v", s, !want)
		}
	}
}

// P13: a decimal is the exact rational its literal spells, and equal literals
// have one spelling.
func TestDecimalIsExact(t *testing.T) {
	literal := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := literal.Draw(t, "a"), literal.Draw(t, "b")
		ca, ok := decimal(a)
		cb, okb := decimal(b)
		if !ok || !okb {
			t.Skip()
		}
		ra, _ := new(big.Rat).SetString(a)
		rb, _ := new(big.Rat).SetString(b)
		rc, valid := new(big.Rat).SetString(ca)
		if !valid || ra.Cmp(rc) != 0 {
			t.Fatalf("decimal(%s) = %s", a, ca)
		}
		if (ra.Cmp(rb) == 0) != (ca == cb) {
			t.Fatalf("%s is %s, %s is %s", a, ca, b, cb)
		}
		// The canonical spelling of a value may be longer than a literal may be.
		if len(ca) <= maxNumber {
			if again, ok := decimal(ca); !ok || again != ca {
				t.Fatalf("decimal(%s) = %s", ca, again)
			}
		}
	})
}

func TestJoinPath(t *testing.T) {
	for _, c := range []struct{ dir, name, want string }{
		{"/srv/in", "a.txt", "/srv/in/a.txt"},
		{"/", "a", "/a"},
		{"/srv/in/", "a", ""},
		{"/srv/../etc", "a", ""},
		{"srv", "a", ""},
		{"/srv", "..", ""},
		{"/srv", ".", ""},
		{"/srv", "", ""},
		{"/srv", "a/b", ""},
		{"/srv", `a\b`, ""},
		{"/srv", "a\nb", ""},
		{"/srv", "a\u200b", ""},
		{"/srv", "a\xff", ""},
	} {
		got, ok := JoinPath(c.dir, c.name)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("P14: JoinPath(%q, %q) = %q, %v", c.dir, c.name, got, ok)
		}
		if dir, name, back := splitPath(got); ok && (!back || dir != c.dir || name != c.name) {
			t.Errorf("splitPath(%q) = %q, %q", got, dir, name)
		}
	}
}

// FuzzCanonical holds, for every type: no panic; the form of a form is itself
// and may be sent; equal values under a type have one form.
func FuzzCanonical(f *testing.F) {
	var cases []formCase
	load(f, "testdata/canonical.yaml", &cases)
	for _, c := range cases {
		f.Add(string(c.Type), []byte(c.JSON))
	}
	f.Fuzz(func(t *testing.T, typ string, raw []byte) {
		if strictjson.Check(raw, strictjson.Request) != nil {
			return
		}
		form, sent, why := Canonical(Type(typ), strictjson.Of(raw))
		SmallSpace(Type(typ), strictjson.Of(raw))
		if why != "" {
			if form != "" || sent {
				t.Fatalf("refused for %s and still %q, %v", why, form, sent)
			}
			return
		}
		if Type(typ) == Untyped {
			return
		}
		if visible(form) != "" && Type(typ) != Untyped {
			t.Fatalf("form %q holds invisible text", form)
		}
		if len(form) > maxNumber && (Type(typ) == Decimal || Type(typ) == Integer || Type(typ) == ID) {
			return // an expanded exponent
		}
		again, ok, why := Canonical(Type(typ), strictjson.StringOf(form))
		if again != form || !ok || why != "" {
			t.Fatalf("%s: form %q of %s has the form %q, %v, %q", typ, form, raw, again, ok, why)
		}
	})
}
