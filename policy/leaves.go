package policy

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

func wordSet(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// saysItLeaves returns the word by which the name or the title of a tool says that
// something leaves: that it is sent, published, shared, paid. It is "" where none does. It
// is a verb for sure where it is no noun as well, or such words stand behind it: that of
// post_message is not, that of reply_to is.
func saysItLeaves(name string) (word string, verb bool) {
	words := text.NameWords(name)
	object, makes := false, false
	for i, w := range words {
		w = apart(w)
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch {
		case joining[w]:
			object, makes = false, false
		case Called(w, "settling") && Called(next, "moved"), w == "add" && slices.Contains([]string{"comment", "comments"}, words[len(words)-1]):
			return words[len(words)-1], true
		case object:
		case makes && Called(w, "made", "thing") && (next == "" || joining[next] || prepositions[next]): // create_post
			return w, true
		case makes && Called(w, "thing"), Called(w, "thing") && Called(next, "handling", "behind"), w == "forward" && next == "": // message_delete, fast_forward
			object = true
		case Called(w, "leaves"):
			return w, !Called(w, "thing")
		case Called(w, "making"):
			makes = true
		case Called(w, "handling"):
			object = true
		}
	}
	return "", false
}

// apart is the verb of a word in which one that leaves and what leaves are written as one:
// sendmail, sendmessage. Of any other it is the word.
func apart(w string) string {
	for verb := range kinds["leaves"] {
		if what, ok := strings.CutPrefix(w, verb); ok && !Called(verb, "thing") && Called(what, "thing", "made") {
			return verb
		}
		if how, ok := strings.CutSuffix(w, verb); ok && Called(how, "before") && w != "rewire" {
			return verb
		}
	}
	return w
}

var joining, prepositions = wordSet("and then or"), wordSet("to for with in on from by as now all async later")

// OutHint is what an operator writes instead of an effect by which nothing leaves.
const OutHint = "effect: [write, send], of money [write, transfer]; annotations: overruled, where nothing leaves"

// stays reports whether a contract says of its tool that nothing leaves by it, and not
// that this is so whatever the tool says of itself. A grant alone is what it is: who is
// invited gets nothing else. What is closed says nothing.
func (c *Contract) stays() bool {
	e := c.Declared()
	return !c.Closed && !c.Overrules && e != 0 && e != Auth && e&(Send|Egress|Transfer) == 0
}

// BeliedBy returns the word of a tool's name or title that says that something leaves,
// where the contract says that nothing does, else "". What reads is called by nouns.
func (c *Contract) BeliedBy(name string) string {
	if !c.stays() {
		return ""
	}
	word, verb := saysItLeaves(name)
	if c.Declared() == Read && !verb {
		return ""
	}
	return word
}

// beliedByCase is BeliedBy of a value that chooses a case, by a verb alone.
func (c *Contract) beliedByCase(k *Case) string {
	if one := (&Contract{Effect: k.Effect, Closed: c.Closed, Overrules: c.Overrules}); !one.stays() {
		return ""
	}
	for _, v := range k.Values {
		if s, ok := strictjson.Text(v); ok {
			if word, verb := saysItLeaves(s); verb {
				return word
			}
		}
	}
	return ""
}

// BeliedByArgument reports the same of the name of an argument that says who receives
// something. Of a read that is what is looked for, and what is drafted is not sent.
func (c *Contract) BeliedByArgument(name string) bool {
	if !c.stays() || c.Declared()&Write == 0 || slices.ContainsFunc(text.NameWords(c.Tool), func(w string) bool { return Called(w, "later") }) {
		return false
	}
	words := text.NameWords(name)
	if len(words) == 2 && Called(words[0], "leaves") && (words[1] == "to" || words[1] == "with") { // share_with
		return true
	}
	if n := len(words); n > 1 && (words[n-1] == "id" || words[n-1] == "ids") && !strings.HasPrefix(words[n-2], "webhook") { // that one is there already
		words = words[:n-1]
	}
	full := len(words)
	for len(words) > 1 && Called(words[len(words)-1], "by") {
		words = words[:len(words)-1]
	}
	return len(words) > 0 && (Called(words[len(words)-1], "receiving") || len(words) < full && Called(words[len(words)-1], "called"))
}

// KeepsText reports whether by the contract nothing leaves, and some argument is text in
// a file under a closed root (R14).
func (c *Contract) KeepsText() bool {
	for a := range c.everyArg {
		if a.Local && c.stays() {
			return true
		}
	}
	return false
}

// Declared is what the contract says that calls of the tool do: of cases, what any does.
func (c *Contract) Declared() (e Effect) {
	if c.CaseAt == nil {
		return c.Effect
	}
	for _, k := range c.Cases {
		e |= k.Effect
	}
	return e
}

// OrdersWhat reports whether an argument names what an act is on, and the user has to order it (R9).
func (a ArgRule) OrdersWhat() bool {
	return len(a.Orders) > 0 && (a.Role == Target || a.Role == Selector)
}
