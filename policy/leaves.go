package policy

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

var (
	// leaving are verbs by which something goes to others, and nouns those of them that
	// also name a thing, the message, the post, or what is done to the user: notify.
	leaving = wordSet("send sends resend deliver transmit relay crosspost publish publishes notify notifies announce pay pays reimburse donate remit disseminate buy retweet invite " +
		"tweet upload broadcast share reply email mail message post push transfer forward wire refund purchase charge withdraw sell")
	nouns = wordSet("notify notifies tweet upload broadcast share reply email mail message post push transfer forward wire refund purchase invite charge")
	// made are nouns alone. To make what they name, or such a noun, is to do it.
	made   = wordSet("payment payout invitation transaction donation announcement notification notifications webhook webhooks trade checkout comment comments")
	making = wordSet("create creates make makes new issue submit initiate place do execute schedule queue trigger compose fire leave")
	// settling is what is done to what moves money: to approve it moves it.
	settling = wordSet("approve complete confirm authorize finalize execute capture accept")
	moved    = wordSet("payment payments payout payouts trade trades checkout purchase transaction transactions refund transfer transfers donation withdrawal")
	// manifold are what stands before such a verb in one word: bulksend, repost.
	manifold = strings.Fields("bulk mass batch multi auto quick direct re")
	// behind are words that say of such a noun before them that it is one.
	behind = wordSet("id ids history login logout address addresses queue box price settings preferences process processing processor type types format order orders")
	// others are verbs behind which such a word is what something is done to.
	others = wordSet("update edit modify change patch delete remove drop purge mark unmark move archive unarchive label star unstar pin unpin draft save store copy hide read get list " +
		"set unset stop cancel close open reopen add append insert attach search find filter sort count show view fetch check validate verify parse format render preview log record track " +
		"classify summarize translate extract convert encode decode encrypt decrypt sign import load register configure enable disable mute unmute snooze flag undo recall " +
		"approve reject accept decline like unlike react rename merge clear test export backup restore sync describe inspect lookup query resolve receive wait start init use select " +
		"unshare uninvite unpublish unsubscribe subscribe block unblock download pull prepare commit amend mount unmount review rate rank split assign unassign browse explain " +
		"compare retrieve analyze observe discover calculate compute estimate echo display grep write put generate build type print run toggle lock unlock")
	// kept are what is sent some other time, if ever.
	kept = wordSet("draft drafts prepare template templates filter filters rule rules signature contact contacts")
	// receiving are names of arguments that say to whom; by what may stand behind them.
	receiving = wordSet("cc bcc recipient recipients webhook webhooks invitee invitees addressee addressees payee payees beneficiary beneficiaries")
	by        = wordSet("url urls uri email emails mail address addresses list phone number numbers")
	// called are verbs before a link, which is called then: notify_url.
	called = wordSet("notify notification callback ping")
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
		case settling[w] && moved[next], w == "add" && slices.Contains([]string{"comment", "comments"}, words[len(words)-1]):
			return words[len(words)-1], true
		case object:
		case makes && (made[w] || nouns[w]) && (next == "" || joining[next] || prepositions[next]): // create_post
			return w, true
		case makes && nouns[w], nouns[w] && (others[next] || behind[next]), w == "forward" && next == "": // message_delete, fast_forward
			object = true
		case leaving[w]:
			return w, !nouns[w]
		case making[w]:
			makes = true
		case others[w]:
			object = true
		}
	}
	return "", false
}

// apart is the verb of a word in which one that leaves and what leaves are written as one:
// sendmail, sendmessage. Of any other it is the word.
func apart(w string) string {
	for verb := range leaving {
		if what, ok := strings.CutPrefix(w, verb); ok && !nouns[verb] && (nouns[what] || made[what]) {
			return verb
		}
		if how, ok := strings.CutSuffix(w, verb); ok && slices.Contains(manifold, how) && w != "rewire" {
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
	if !c.stays() || c.Declared()&Write == 0 || slices.ContainsFunc(text.NameWords(c.Tool), func(w string) bool { return kept[w] }) {
		return false
	}
	words := text.NameWords(name)
	if len(words) == 2 && leaving[words[0]] && (words[1] == "to" || words[1] == "with") { // share_with
		return true
	}
	if n := len(words); n > 1 && (words[n-1] == "id" || words[n-1] == "ids") && !strings.HasPrefix(words[n-2], "webhook") { // that one is there already
		words = words[:n-1]
	}
	full := len(words)
	for len(words) > 1 && by[words[len(words)-1]] {
		words = words[:len(words)-1]
	}
	return len(words) > 0 && (receiving[words[len(words)-1]] || len(words) < full && called[words[len(words)-1]])
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
