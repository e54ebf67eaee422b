package quote

import (
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/words"
)

// TestValue: what answers is the whole name, also where it has a word of whom or of
// what is asked, and nothing that says whom or what alone.
func TestValue(t *testing.T) {
	for _, c := range []struct{ subject, predicate, sentence, fact, want string }{
		{"Marta Weber", "deputy", "The deputy of Marta Weber is Marta Rossi now.", "Marta Weber's deputy is Marta Rossi", "Marta Rossi"},
		{"Marta Weber", "deputy", "From today on Marta Weber has Greta Weber as deputy.", "Marta Weber's deputy is Greta Weber", "Greta Weber"},
		{"Anna", "meeting room", "For Anna put down Room 12 under meeting room.", "Anna's meeting room is Room 12", "Room 12"},
		{"Halden AB", "insurer", "The insurer of Halden AB is Thornbury Insurance AB.", "Halden AB's insurer is Thornbury Insurance AB", "Thornbury Insurance AB"},
		{"Halden AB", "insurer", "(The insurer of Halden AB: Calder AB)", "Halden AB's insurer is Calder AB", "Calder AB"},
		{"", "locker number", "By the way, L-959 is my new locker number.", "By the way, L-959 is my new locker number.", "L-959"},
		{"", "landlord", "My landlord is Marlow Robotics GmbH now.", "My landlord is Marlow Robotics GmbH now.", "Marlow Robotics GmbH"},
		{"", "rent", "My rent 900 is due.", "rent 900", "900"},
		{"Anna", "phone", "Anna phone 555-0100", "Anna phone 555-0100", "555-0100"},
		{"", "meeting room", "My meeting room is 12.", "The user's meeting room is 12", "12"},
		{"Anna", "city", "The city of Anna is Ulm, not Anna Bay.", "Anna's city is Ulm", "Ulm"},
		{"", "allergy", "soy is my new allergy, found out yesterday", "soy is my new allergy", "soy"},
		{"", "kids", "My two kids are Tom (8) and Mia (5).", "The user's kids are Tom (8) and Mia (5)", "Tom (8) and Mia (5)"},
		{"", "car", "Our car is a blue Skoda, plate BE 482910", "The car is a blue Skoda with plate BE 482910", "blue Skoda"},
		{"", "rent", "The rent, due monthly, is 900.", "rent is 900 due monthly", "900"},
		{"", "shirt size", "My shoe size is 43, my shirt size is 40", "The shirt size is 40 and the shoe size 43", "40"},
		{"", "accountant", "Anna Berg is my accountant, reach her at anna@berg.example", "Anna Berg is the accountant", "Anna Berg"},
	} {
		f := &Fact{Text: c.fact, Subject: words.Of(c.subject), Predicate: words.Of(c.predicate), Speaks: func(w string) bool { return w == "user" || w == "my" }, Denies: func(string) bool { return false }}
		if got := f.Value(&Unit{Text: c.sentence}); got != c.want {
			t.Errorf("%s: %q, want %q", c.sentence, got, c.want)
		}
	}
}

// TestShortForms: one behind a name ends its sentence where a function word follows.
func TestShortForms(t *testing.T) {
	for text, want := range map[string]string{
		"We pay Acme Ltd. The rest is due.":        "We pay Acme Ltd.|The rest is due.",
		"We pay Acme Ltd. Berlin and nobody else.": "We pay Acme Ltd. Berlin and nobody else.",
		"Ask Dr. No. He knows.":                    "Ask Dr. No. He knows.",
		"Ask Mr. Will Smith.":                      "Ask Mr. Will Smith.",
		"Acme Ltd.":                                "Acme Ltd.",
	} {
		if got := Sentences(text); !slices.Equal(got, strings.Split(want, "|")) {
			t.Errorf("%q", got)
		}
	}
}
