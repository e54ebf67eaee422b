package provenance

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/strictjson"
)

// TestMeans: § stands before and behind the phrase.
func TestMeans(t *testing.T) {
	for text, want := range map[string]bool{
		"§open the door§": true, "Please §open the door§.": true, "I was late, §open the door§": true, "Thanks! §open the door§ at 5.": true, "§open the door§\nWhat time is it?": true,
		"§open the door§. What time is it?": true, "§open the door§, turn on the light": true, "§open the door§ but slowly": true, "§open the door§. Nothing else.": true,
		// quotations
		`"Dear Kim, §open the door§ now"`: false, "'Dear Kim, §open the door§ now'": false, "“Dear Kim, §open the door§ now”": false, "„Kim, §open the door§ now“": false,
		"»Kim, §open the door§ now«": false, "«Kim, §open the door§ now»": false, "‘Kim, §open the door§ now’": false, "`Kim, §open the door§ now`": false, `"Kim, §open the door§ now`: false,
		"\"Dear Kim,\n\n§open the door§ now\"": false, "> Kim, §open the door§ now": false, `"Kim's here, §open the door§"`: false, `"a" and "b, §open the door§"`: false,
		`"a" then §open the door§`: true, "“a” then §open the door§": true, "„a“ then §open the door§": true, "'a' then §open the door§": true, `I have a 5" pipe, §open the door§`: true,
		"I'm at Kim's, §open the door§": true, "It's the Smiths' day, §open the door§": true, "'tis late, §open the door§": true, `(she is "in") §open the door§`: true,
		// words of one language that are others in another
		"Save it in non-blocking mode and §open the door§": true, "Use a sans-serif font and §open the door§": true, "Speichere es als notes.md und §open the door§": true, "Mehr als vorher, §open the door§": true,
		"Si le build passe, §open the door§": false, "Als het werkt, §open the door§": false, "Se funcionar, §open the door§": false, "Cuando funcione, §open the door§": false, "§open the door§ zodra het werkt": false,
		// questions
		"Did somebody §open the door§ today?": false, "§open the door§?": false, "§open the door§ (now)?": false, "§open the door§\ntoday?": false, "§open the door§ of v1.2?": false, "§open the door§？": false,
		"Who can §open the door§": false, "who sees a.txt can §open the door§": false, "If it rains, §open the door§": false, "What would happen if I §open the door§": false, "Wenn es regnet, §open the door§": false,
		"Kim, was soll §open the door§": false, "Sag mir, was §open the door§ heisst": false, "Bob hat §open the door§": false,
		"Could you §open the door§, please?": true, "could you §open the door§": true, "Can you §open the door§?": true, "Will you please §open the door§?": true, "Please, would you §open the door§?": true,
		"Kannst du §open the door§?": true, "Könntest du bitte §open the door§?": true, "Würdest du §open the door§?": true, "Now that I am home, could you §open the door§?": true,
		"I'd appreciate it if you could §open the door§": true, "It would be great if you could §open the door§.": true, "I’d be surprised if you could §open the door§": false, "Would it be great if you could §open the door§?": false,
		"Can they §open the door§?": false, "Could you tell me who can §open the door§?": false, "Can you explain how to §open the door§?": false, "If you can, could you §open the door§?": false, "Can't you §open the door§?": false,
		"Can you see Kim? §open the door§": true, "Can you see Kim? Did he §open the door§?": false,
		// whose doing it is, and when
		"How do I §open the door§": false, "Should I §open the door§": false, "Kim, should I §open the door§": false, "Kim §open the door§": false, "I §open the door§ daily": false, "Soll ich §open the door§": false,
		"Could you ask Kim to §open the door§?": false, "Will you §open the door§ one day?": false, "Ask Kim to come and §open the door§": false, "Kim (my son) §open the door§": false,
		"§open the door§ unless it rains": false, "§open the door§, but only if Kim rings": false, "§open the door§ when I say so": false, "§open the door§, actually leave it": false, "§open the door§, rather not": false,
		"Set it and then §open the door§": true, "Go to the hall and §open the door§": true, "I want you to §open the door§": true, "Let’s §open the door§": true, "Can you please just help me §open the door§?": true,
		"§open the door§. If it rains, close it.": true, "Please turn on the §open the door§ mode": true, "I like the §open the door§ mode": false,
		"Put that on a shelf and §open the door§": true, "Fix that and §open the door§": true, "Back to base and §open the door§": true, "Go back to base and then §open the door§": true, "Switch to the hall, set that up and §open the door§": true,
		"Save what I have as \"wip\" and §open the door§": true, "ok, keep whatever you changed so far, then §open the door§": true, "Add what's there and §open the door§": true, "Take what is left in the box and §open the door§": true,
		"Explain what I have to take and §open the door§": false, "Save what I have to do to §open the door§": false, "Kim took what I have and will §open the door§": false, "What I have and §open the door§": false, "Save what I had Kim say and §open the door§": false,
		"Kim wants to go back to base and §open the door§": false, "How to switch to main and §open the door§": false, "I hope that on Monday they come and §open the door§": false, "Think that over and §open the door§": false, "Said that on a day and §open the door§": false,
		"Kim has that on a shelf and §open the door§": false, "Back to base they went to §open the door§": false, "Don't put that on a shelf and §open the door§": false, "If you put that on a shelf and §open the door§": false,
		// where, said before it
		"On https://leaf.example/contact §open the door§.": true, "Thanks. In $ROOT/repo §open the door§": true, "in acme/parser §open the door§": true, "Yes, at leaf.example §open the door§": true, "On the page §open the door§": true,
		"Is he in acme/parser §open the door§": false, "Bob in acme/parser §open the door§": false, "In here §open the door§": false, "In acme/parser Bob §open the door§": false, "In acme/parser, don't §open the door§": false,
		"Should it in acme/parser §open the door§": false, "In acme/parser §open the door§?": false, "\"In acme/parser §open the door§\"": false, "If it is shut, in acme/parser §open the door§": false, "in a.txt's §open the door§": false,
		"In spring-projects/spring-boot §open the door§": true, "In src/stack.go §open the door§ of it": false, "In README.md §open the door§": false, "In src/stack.go, §open the door§": false, "In README.md, fix it, §open the door§": true, "In claude.ai §open the door§": true, "On leaf.example/a.html §open the door§": true,
		"Maybe, in acme/parser §open the door§": false, "Bob wants to, in acme/parser §open the door§": false, "I want you to, in acme/parser, §open the door§": true, "§open the door§ in a month": false, "§open the door§ in two weeks": false, "On 10.0.0.1/admin §open the door§": true, "In ~/a.d §open the door§ of acme/parser": true,
		"On 24.12 §open the door§": false, "At 10.30 §open the door§": false, "In v2.0 §open the door§": false, "On Monday/Tuesday §open the door§": false, "On error/failure §open the door§": false,
		"In acme/parser—never §open the door§": false, "In acme/parser.Never §open the door§": false, "On acme/parser:if §open the door§": false, "In theory/practice §open the door§": false,
		"Bob will, in acme/parser, §open the door§": false, "They may, I think, §open the door§": false, "As soon as you can, §open the door§": true, "As we agreed to, §open the door§": true,
		"§open the door§ of acme/parser tomorrow": false, "§open the door§ 41 in acme/parser on Monday": false,
		"Kim's mail:\n§open the door§": false, "Forwarded message from Kim:\n\nIn acme/parser §open the door§": false, "The commit message:\n- §open the door§": false, "Reply to her mail and then:\n- §open the door§": true, "Today:\n- read my mail\n- §open the door§": true,
		// of whom it is, and what is so
		"Look around, and §add everyone who is missing§ to it": true, "§add all who are not in it§": true, "If §doors are locked§": false, "The §doors are locked§": false,
		"Bob will §add everyone who is missing§": false, "Who can §add everyone who is missing§?": false, "Don't §add all who are not in it§": false, "§who is in it§": false,
		// denials
		"§open the door§? No, leave it.": false, "§open the door§. No, leave it.": false, "§open the door§, no": false, "§open the door§ today, please. No, wait.": false, "§open the door§. Oh no, stop!": false,
		"§open the door§ - don't": false, "§open the door§ at 10:30 for Kim, no": false, "§open the door§ at 10.30 for Kim (no, leave it)": false, "§open the door§ but don’t": false, "§open the door§. Do not.": false, "§open the door§, nicht das Fenster": false, "§open the door§. Nein!": false, "§open the door§ or not": false,
		"§open the door§\nStop": false, "§open the door§. \"No.\"": false, "don't open a.txt or §open the door§": false,
		"§open the door§ at \xff": true, "\xff\xff §open the door§\xff": true,
	} {
		before, rest, _ := strings.Cut(text, "§")
		phrase, after, _ := strings.Cut(rest, "§")
		if got := Means(before+phrase+after, len(before), len(before)+len(phrase)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestTurnedTo: a word of two parts is said where the first orders, and the second stands at the end.
func TestTurnedTo(t *testing.T) {
	for text, want := range map[string]bool{
		"scale catalog to| 5": true, "please scale the deployment catalog up to| 5": true, "Could you SCALE it to| 5?": true, "it is slow, scale it to| 5": true, "scale\tit  to| 5": true,
		"scale to| 5": true, "scale catalog, to| 5": false, "scale catalog. Up to| 5": false, "scale catalog\nto| 5": false, "upscale it to| 5": false, "scaled it to| 5": false, "scale it into| 5": false,
		"scale it 2 times to| 5": false, "don't scale it to| 5": false, "if it rains, scale it to| 5": false, "should I scale it to| 5": false, "Kim will scale it to| 5": false, "\"scale it to| 5\"": false,
		"scale a b c d e f g h i to| 5": false, "to| 5": false, "to scale it to| 5": false, "scale it to| 5, or not": false,
		"scale it to| 5 tomorrow": false, "scale it to| \"5\" on Friday": false, "scale it to| 5 as soon as Kim agrees": false, "scale it to| 5 in shop": true, "scale it to| 5 as soon as possible": true,
	} {
		before, after, _ := strings.Cut(text, "|")
		if _, got := turnedTo(before, before, before+after, "scale … to", true); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if _, ok := turnedTo("scale it to", "scale it to", "scale it to 5", "scale", true); ok {
		t.Error("a word of one part")
	}
}

// TestMeansQuoted: what stands between two marks of a pair, apart from words, is not meant,
// whatever else the text holds that is no mark.
func TestMeansQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.StringOf(rapid.SampledFrom([]rune("ab 5.,\nä")))
		pair := rapid.SampledFrom([]string{`""`, "''", "“”", "„“", "‘’", "‚‘", "«»", "»«", "‹›", "``"}).Draw(t, "pair")
		open, shut, _ := strings.Cut(strings.Join(strings.Split(pair, ""), " "), " ")
		before := plain.Draw(t, "before") + " " + open + plain.Draw(t, "in") + " "
		after := " " + plain.Draw(t, "behind") + shut + " " + plain.Draw(t, "after")
		if Means(before+"open the door"+after, len(before), len(before)+len("open the door")) {
			t.Fatalf("%q is meant", before+"open the door"+after)
		}
	})
}

// TestSaidWhere: a directory in which it is done may stand between two words of a phrase, once.
func TestSaidWhere(t *testing.T) {
	const phrase = "undo the last commit but keep the changes"
	for text, want := range map[string]bool{
		"undo my last commit in /srv/shop but keep the changes": true, "Undo the last commit of /srv/my.shop/a-b but keep all my changes!!": true,
		"undo my last commit in /srv/shop/a.md but keep the changes": false, "undo my last commit in shop but keep the changes": false,
		"undo my last commit in /srv/a in /srv/b but keep the changes": false, "don't undo my last commit in /srv/shop but keep the changes": false,
		"undo my last commit in /srv/shop but keep the changes?": false,
	} {
		if got := typedIn(t, text).Said(phrase); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestTypedBefore: marks of a call end a word, and several full stops may stand for its rest; a
// word of two parts orders, and the others of its list need no order.
func TestTypedBefore(t *testing.T) {
	words := []string{"branch", "put … on", "fix … on"}
	for text, want := range map[string]bool{
		"push it to branch main!!": true, "is branch main fine?!": true, "branch main... or so": false, "branch main!?x": false,
		"put a line for it into main.go on main": true, "put it in. Is it on main?": false, "don't put it on main": false, "put 3 of them on main": true,
		"put it into main.go, on main": false, "put it there—on main": false,
	} {
		_, why := typedIn(t, text).Typed(Query{Value: strictjson.StringOf("main"), Words: words, Named: true})
		if (why == "") != want {
			t.Errorf("%q: %q", text, why)
		}
	}
}
