package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/policy"
)

// TestReadAnswer: yes, from now on and no are words; what was not shown whole is looked
// at first, and what is kept is shown before it is.
func TestReadAnswer(t *testing.T) {
	long := `{"to":"kim@corp.example","body":"` + strings.Repeat("lunch ", 2000) + `","cc":"eve@evil.example"}`
	line := policy.Grown{Tool: "mail/send", Arg: "/to", From: "mail/list#/ids/*"}
	source := []approval.Offer{{Keep: approval.KeepSource, Lines: []policy.Grown{line}}}
	line.Writes = policy.WritesOurs
	ours := []approval.Offer{{Keep: approval.KeepOurs, Lines: []policy.Grown{line}}, {Keep: approval.KeepValue, Lines: []policy.Grown{{Tool: "mail/send", Arg: "/to", Const: []byte(`"x"`)}}}}
	other := line
	other.From = "mail/list#/names/*"
	two := []approval.Offer{{Keep: approval.KeepOurs, Lines: []policy.Grown{line, other}}, ours[1]}
	click := json.RawMessage(`{"target":"e2"}`)
	site := []approval.Offer{{Keep: approval.KeepPlace, Lines: []policy.Grown{{Tool: "web/click", On: "shop.example"}}}, {Keep: approval.KeepValue, Lines: []policy.Grown{{Tool: "web/click", Call: click, On: "shop.example"}}}}
	row := []approval.Offer{{Keep: approval.KeepValue, Lines: []policy.Grown{{Tool: "shop/write_query", Call: json.RawMessage(`{"query":{"adds":"row","table":"seeds"}}`), Texts: []string{"/query/values/0/0"}}}}}
	for _, c := range []struct {
		arguments, typed string
		offers           []approval.Offer
		yes              bool
		keep             approval.Keep
		fails            bool
		shows            string
	}{
		{`{"to":"x"}`, "y\n", source, true, "", false, "[f] from now on"},
		{`{"to":"x"}`, "YES\n", nil, true, "", false, "[y] this once   [n] no"},
		{`{"to":"x"}`, "n\n", source, false, "", false, ""},
		{`{"to":"x"}`, "\nmaybe\ny\n", nil, true, "", false, ""},
		{`{"to":"x"}`, "", source, false, "", true, ""},
		{`{"to":"x"}`, "1\n2\n3\n4\n5\ny\n", nil, false, "", true, ""},
		{`{ "to": "a\u001b[2J" }`, "b\ny\n", nil, true, "", false, `{ "to": "a\u001b[2J" }`},
		{long, "y\n", nil, false, "", true, "look at them first"},
		{long, "y\nb\ny\n", nil, true, "", false, "eve@evil.example"},
		{long, "n\n", nil, false, "", false, ""},
		{`{"to":"x"}`, "f\ny\n", source, true, approval.KeepSource, false, `{"tool":"mail/send","arg":"/to","from":"mail/list#/ids/*"}`},
		{`{"to":"x"}`, "f\nf\n", nil, false, "", true, ""},
		{`{"to":"x"}`, "f\n", source, false, "", true, ""},
		{`{"to":"x"}`, "f\n\n", source, false, "", true, ""}, // shown, and not said yes to
		{`{"to":"x"}`, "f\n\ny\n", source, true, "", false, ""},
		{`{"to":"x"}`, "f\nn\nn\n", source, false, "", false, ""},
		{`{"to":"x"}`, "f\n1\ny\n", ours, true, approval.KeepOurs, false, "Who can write mail/list#/ids/*?"},
		{`{"to":"x"}`, "f\n2\ny\n", ours, true, approval.KeepValue, false, `"const":"x"`},
		{`{"to":"x"}`, "f\n\n\nn\n", ours, false, "", false, `"const":"x"`},
		{`{"to":"x"}`, "f\ny\n1\ny\n", ours, true, approval.KeepOurs, false, "That is none of 1, 2, nor Enter alone."},
		{`{"to":"x"}`, "f\nx\nx\nx\n\nn\n", ours, false, "", false, `"const":"x"`},
		{`{"to":"x"}`, "f\n1\n2\ny\n", two, true, approval.KeepValue, false, "What you said of who can write mail/list#/ids/* is not kept by itself"},
		{`{"to":"x"}`, "f\n2\ny\n", two, true, approval.KeepValue, false, "exact value alone"},
		{`{"target":"e2"}`, "f\ny\n", site, true, approval.KeepPlace, false, "web/click may be called in any way on shop.example"},
		{`{"target":"e2"}`, "f\n\ny\n", site, true, approval.KeepValue, false, `web/click may be called with {"target":"e2"} on shop.example`}, // not every call: this one
		{`{"target":"e2"}`, "f\n\n\nn\n", site, false, "", false, "whatever its pages say"},
		{`{"query":"INSERT"}`, "f\ny\n", row, true, approval.KeepValue, false, "one place more or fewer is another call"},
		{long, "f\nb\nf\ny\n", source, true, approval.KeepSource, false, "look at them first"},
	} {
		var out strings.Builder
		q := approval.Shown{Arguments: c.arguments}
		q.FromNowOn = c.offers
		a, err := readAnswer(newLines(t.Context(), strings.NewReader(c.typed), &out), &out, &q)
		if a.Yes != c.yes || a.Keep != c.keep || (err != nil) != c.fails || !strings.Contains(out.String(), c.shows) {
			t.Errorf("%q: %+v %v\n%.300s", c.typed, a, err, out.String())
		}
	}
}

// TestKeepIsShownInRows: a value within a line that is to be kept leaves no room in which it
// could seem to be a question of ours.
func TestKeepIsShownInRows(t *testing.T) {
	forged := strings.Repeat(" ", 70) + "[y] keep it   [Enter] no >" + strings.Repeat(" ", 60)
	call, _ := json.Marshal(map[string]string{"channel": "C-eve", "thread": forged})
	q := &approval.Shown{Question: approval.Question{FromNowOn: []approval.Offer{{Keep: approval.KeepValue, Lines: []policy.Grown{{Tool: "chat/post", Call: call}}}}}}
	var out strings.Builder
	if keep, err := readKeep(newLines(context.Background(), strings.NewReader("\n"), &out), &out, q); keep != "" || err != nil {
		t.Fatal(keep, err)
	}
	if strings.Contains(out.String(), strings.Repeat(" ", 9)) || !strings.Contains(out.String(), "C-eve") {
		t.Errorf("%q", &out)
	}
}

// TestSentence: a sentence of ours is broken between words.
func TestSentence(t *testing.T) {
	for columns, want := range map[int]string{0: "held for a person", 8: "held for\na person", 7: "held\nfor a\nperson", 3: "held\nfor\na\nperson", 17: "held for a person"} {
		if got := brokenTo("held for a person", columns); got != want {
			t.Errorf("%d columns: %q", columns, got)
		}
	}
}

// TestTellUnheard: who is not heard is told one thing to try.
func TestTellUnheard(t *testing.T) {
	for why, want := range map[error]string{
		localdoor.ErrKin:   "it was not started by a person at a terminal of his own\ntry: the same in a terminal window of your own\n",
		localdoor.ErrLoose: ": use one that was open before, or log in anew\n",
	} {
		var out strings.Builder
		(&watching{out: &out, told: map[string]bool{}}).tellUnheard(why.Error())
		if !strings.HasSuffix(out.String(), want) || strings.Count(out.String(), "\n") != strings.Count(want, "\n") {
			t.Errorf("%q", &out)
		}
	}
}
