package console

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/internal/strictjson"
)

type card struct {
	approval.Shown
	Long   bool   // it is not shown whole, and nobody says yes to it here
	Deaf   string // why the gateway that asks hears no answer from this login, "" where it does
	Offers []offer
	Fault  string
	Field  string        // of its form, in which that is: code or keep
	Open   bool          // the fold of its offers, in which somebody was
	Kept   approval.Keep // the one of these that he chose
	Over   bool          // its call is held no more
	Left   int           // seconds for which it is still
	Name   string        // of its session
}

// Inside is the text in which a value stands that nothing holds whole, nil for none.
func (c *card) Inside(v approval.ShownValue) *origin {
	if v.Inside == nil {
		return nil
	}
	return insideOf(c.Session, v.Inside, []byte(v.Value))
}

// A page shows so many cards, and no more of one than maxDrawn: what an agent asks for is
// its own choice. Who is to say yes has seen all of it.
const maxCards, maxPage = 20, 4 * maxDrawn

// perPiece is about what the markup around a piece of text takes.
const perPiece = 32

func long(q *approval.Shown) bool { return weight(q) > maxDrawn }

// weight is how many bytes it takes to draw a question, or more than maxDrawn.
func weight(q *approval.Shown) (n int) {
	add := func(texts ...string) {
		for _, s := range texts {
			if n += len(s); n <= maxDrawn {
				n += perPiece * len(draw(s))
			}
		}
	}
	add(q.Server, q.Tool, q.Arguments, q.Came, q.Answers)
	for _, v := range q.Values {
		if n > maxDrawn {
			break
		}
		n += perPiece
		add(v.Pointer, v.Value)
		for _, at := range v.Seen {
			n += perPiece
			add(at.Tool, at.Pointer, at.Inner)
		}
	}
	return n
}

// offers are those of a question that its card shows. No other is taken from here.
func offers(q *approval.Shown) (out []offer) {
	n := 0
	for _, o := range q.FromNowOn {
		rows, fits := o.Explained()
		if n += len(rows); !fits || n > maxDrawn/8 {
			continue
		}
		one := offer{o.Keep, choices[o.Keep], nil, nil, o.Says()}
		if o.WholeCall() {
			one.Words = "This call"
		}
		for _, g := range o.Lines {
			one.Allows, one.Lines = append(one.Allows, approval.Sentence(g)), append(one.Lines, approval.Line(g))
		}
		out = append(out, one)
	}
	return out
}

// offer is one as a card shows it: in a word what is kept, what that allows, the lines
// themselves, and what who chooses it says by that.
type offer struct {
	Keep                approval.Keep
	Words               string
	Allows, Lines, Says []string
}

// choices tell offers apart.
var choices = map[approval.Keep]string{
	approval.KeepServer: "This field, because the server makes up what stands there, as a number or an id",
	approval.KeepSource: "This field",
	approval.KeepOurs:   "This field, because people write it, and all of them are our own",
	approval.KeepClosed: "This collection, because our own people alone add to it",
	approval.KeepPlace:  "Every call of this tool on this site, whatever its pages say",
	approval.KeepValue:  "This value alone, whoever wrote it",
}

type approvalsPage struct {
	Cards     []card
	IDs       string
	More      int // that are not shown
	Confirmed bool
	Token     bool   // the first yes takes the token, and not a code
	Said      string // what became of an answer
	Kept      bool   // and something is kept by it
	Word      string
	Tail      string
}

// Holds is for how many seconds a call is held while the page is open.
func (*approvalsPage) Holds() int { return int(approval.Waits / time.Second) }

func (c *Console) approvals(x *request) error {
	p := c.waiting(x)
	c.tell(p, x)
	return c.show(x, http.StatusOK, "approvals.html", "Approvals", p)
}

// Elsewhere is what waits at the other gateways of the state directory. It is answered
// there, by the rules of each.
type Elsewhere interface {
	// Open are the questions that wait there; with fresh they are asked for anew.
	Open(ctx context.Context, fresh bool) []approval.Shown
	// There says that somebody watches, until leave is called.
	There() (leave func())
	// Said is who answered one that waited there lately, and what.
	Said(id string) (approval.Answer, bool)
	// Reply answers one, as approval.Queue.Reply does; the status is 0 where no answer came.
	Reply(ctx context.Context, id string, a approval.Answer) (status int, said approval.Reply)
}

// open are all questions that wait, and a channel that is closed when those of this gateway
// change.
func (c *Console) open(ctx context.Context, fresh bool) (all []approval.Shown, changed <-chan struct{}) {
	own, changed := c.o.Queue.Open()
	for i := range own {
		all = append(all, own[i].Show())
	}
	all = append(all, c.o.Elsewhere.Open(ctx, fresh)...)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Clock()
	maps.DeleteFunc(c.waited, func(_ string, q approval.Question) bool { return now.Sub(q.Until) > approval.Stands })
	for i := range all {
		q := &all[i].Question
		if len(c.waited) < 2*approval.MaxOpen && len(q.Server)+len(q.Tool) < 400 {
			c.waited[q.ID] = approval.Question{Session: q.Session, Server: q.Server, Tool: q.Tool, Until: q.Until}
		}
	}
	return all, changed
}

// went is what became of a question that waits no more, and where its call's decisions are.
type went struct {
	Says string `json:"says"`
	To   string `json:"to"`
}

// gone are the questions that waited lately and do not wait any more.
func (c *Console) gone(open []approval.Shown) map[string]went {
	out, now := map[string]went{}, c.o.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, q := range c.waited {
		if slices.ContainsFunc(open, func(o approval.Shown) bool { return o.ID == id }) {
			continue
		}
		a, answered := c.o.Queue.Said(id)
		if !answered {
			a, answered = c.o.Elsewhere.Said(id)
		}
		w := went{"It waits no more: its call passed or ended, or is asked anew.", "/" + filter{Session: q.Session, Tool: q.Server + "/" + q.Tool}.query()}
		switch {
		case answered && a.Yes:
			w.Says = "Accepted: " + short(a.By, 80) + " said yes."
		case answered:
			w.Says = "Refused: " + short(a.By, 80) + " said no."
		case !now.Before(q.Until):
			w.Says = "Expired: nobody answered in time."
		}
		out[id] = w
	}
	return out
}

// waiting are the questions as this login sees them.
func (c *Console) waiting(x *request) *approvalsPage {
	c.mu.Lock()
	p := &approvalsPage{Confirmed: x.login.confirmed, Token: x.login.client != "", Tail: "/events?for=approvals"}
	c.mu.Unlock()
	var ids []string
	drawn := 0
	open, _ := c.open(x.Context(), true)
	names, s := c.o.Names(x.Context()), story.NewSearch(x.Context(), c.o.Log)
	for _, q := range open {
		ids = append(ids, q.ID)
		if len(p.Cards) == maxCards || drawn > maxPage {
			p.More++
			continue
		}
		own, _ := c.o.Queue.Asked(q.ID)
		n := weight(&q)
		if n > maxDrawn {
			q.Question.Server, q.Question.Tool = short(q.Question.Server, 200), short(q.Question.Tool, 200)
			p.Cards = append(p.Cards, card{Shown: approval.Shown{Question: q.Question}, Long: true, Deaf: c.deaf(x.Context(), x.login, own)})
			continue
		}
		one := card{Shown: q, Over: c.lapsed(&q), Left: int(q.Held.Sub(c.o.Clock()) / time.Second), Name: names[q.Session], Deaf: c.deaf(x.Context(), x.login, own)}
		one.Offers, drawn = offers(&q), drawn+n
		s.Question(x.Context(), &one.Shown)
		p.Cards = append(p.Cards, one)
	}
	p.IDs = strings.Join(ids, " ")
	return p
}

// lapsed reports whether the call of a question was held, and is held no more.
func (c *Console) lapsed(q *approval.Shown) bool {
	return !q.Held.IsZero() && !c.o.Clock().Before(q.Held)
}

// tell says on the page what became of the answer that led to it.
func (c *Console) tell(p *approvalsPage, x *request) {
	c.mu.Lock()
	f := flash{}
	if i := slices.IndexFunc(x.login.flashes, func(f flash) bool { return f.told == x.asked("told") }); i >= 0 {
		f = x.login.flashes[i]
	}
	c.mu.Unlock()
	for i := range p.Cards {
		if p.Cards[i].ID == f.at {
			p.Cards[i].Fault, p.Cards[i].Field, p.Cards[i].Open, p.Cards[i].Kept, f.text = f.text, f.field, f.open, f.keep, ""
		}
	}
	p.Said, p.Word, p.Kept = f.text, f.word, f.kept
}

// deaf says why the gateway that asks hears no answer by a login to a question, "" where that is
// not known here. A token may lie in a file that its client's agent reads, and the door of another
// gateway, whose question has no id here, would take the answer for one of this account's person.
func (c *Console) deaf(ctx context.Context, in *login, of approval.Question) string {
	if in.client == "" {
		return ""
	}
	if of.ID == "" {
		return "it is another one than serves this address"
	}
	whose := ""
	if first, err := c.record(ctx, of.Session, 1); err == nil && first.Record.Kind == audit.KindOpen {
		whose, _ = strictjson.Of(first.Record.Data).Get("principal").Text()
	}
	switch whose {
	case "", "none": // anybody's who carries no session
		return "whose agent asks cannot be told"
	case in.client:
		return "you signed in with the token of the client whose agent asks"
	}
	return ""
}

// answer is the one place of the console where a person says yes or no.
func (c *Console) answer(x *request) error {
	id := strings.ToLower(x.PathValue("id"))
	in := x.login
	a := approval.Answer{By: c.by(in), Label: writ.User}
	if in.client != "" {
		var ok bool
		if a.Label, ok = c.o.Worth(in.client); !ok {
			c.end(in)
			c.out(x, "")
			return nil
		}
	}
	own, _ := c.o.Queue.Asked(id)
	deaf := c.deaf(x.Context(), in, own)
	switch x.PostForm.Get("say") {
	case "no":
	case "yes":
		a.Yes = true
	case "keep":
		a.Yes, a.Keep = true, approval.Keep(x.PostForm.Get("keep"))
		if a.Keep == "" {
			return c.unanswered(x, id, "Choose what is kept from now on first. Nothing was answered.", "keep")
		}
	default:
		return c.unanswered(x, id, "Neither yes nor no was said. Nothing was answered.")
	}
	var q *approval.Shown
	open, _ := c.open(x.Context(), false)
	if i := slices.IndexFunc(open, func(q approval.Shown) bool { return q.ID == id }); i >= 0 {
		q = &open[i]
	}
	if a.Yes && deaf == "" {
		if may, err := c.maySayYes(x, id, q, a.Keep); !may {
			return err
		}
	}
	said, status := approval.Reply{}, 0
	switch {
	case deaf != "" && own.ID == "" && q == nil:
		status = http.StatusNotFound
	case deaf != "":
		status, said.Error = http.StatusForbidden, deaf
	case own.ID != "":
		status, said = c.o.Queue.Reply(id, a)
	default:
		status, said = c.o.Elsewhere.Reply(x.Context(), id, a)
	}
	return c.became(x, id, q, a, status, &said)
}

// maySayYes reports whether a login may say yes to a question, nil where that is not known here: it
// is shown whole, what is kept is offered, and the first yes of a login has its code, or the token,
// with it. Where it may not, that is answered.
func (c *Console) maySayYes(x *request, id string, q *approval.Shown, keep approval.Keep) (bool, error) {
	if q != nil && long(q) {
		return false, c.unanswered(x, id, "It is too long to be shown whole here, and nobody says yes to what he did not see. Nothing was answered.")
	}
	if q != nil && keep != "" && !slices.ContainsFunc(offers(q), func(o offer) bool { return o.Keep == keep }) {
		return false, c.unanswered(x, id, "That was not offered. Nothing was answered.")
	}
	what, which := "code", "the one that stands in the terminal beside the link, or that writ console --code prints"
	if x.login.client != "" {
		what, which = "token", "the one that you signed in with, once more"
	}
	ok, over := c.confirm(x.login, x.PostForm.Get("code"))
	switch {
	case over:
		c.end(x.login)
		c.out(x, "The "+what+" was wrong too often. You were signed out, and nothing was answered.")
		return false, nil
	case ok:
		return true, nil
	case strings.TrimSpace(x.PostForm.Get("code")) == "":
		return false, c.unanswered(x, id, "Type the "+what+": the first yes of a login needs "+which+". Nothing was answered.", "code")
	}
	return false, c.unanswered(x, id, "That is not the "+what+". The first yes of a login needs "+which+". Nothing was answered.", "code")
}

func (c *Console) became(x *request, id string, q *approval.Shown, a approval.Answer, status int, said *approval.Reply) error {
	to := "" // what the answer is to: another question may stand below it
	if q != nil {
		to = " to " + short(q.Server+"/"+q.Tool+" "+q.Arguments, 80)
	}
	yes := map[bool]string{true: "yes", false: "no"}[said.Yes]
	late := strings.TrimRight(" "+said.Late(), " ")
	switch {
	case status == http.StatusOK && said.Error != "":
		return c.answered(x, flash{text: "Your yes is on record for this once. " + said.Error + "." + late, word: "asked"})
	case status == http.StatusOK && a.Keep != "":
		var says []string
		for _, g := range said.Lines {
			says = append(says, approval.Sentence(g))
		}
		return c.answered(x, flash{text: "You said yes" + to + ", from now on. It is on record: " + short(strings.Join(says, "; "), 1000) + "." + late, word: "accepted", kept: true})
	case status == http.StatusOK:
		if !said.Yes && late == "" {
			late = " Made again within ten minutes, it is refused."
		}
		return c.answered(x, flash{text: "You said " + yes + to + ". It is on record." + late, word: map[bool]string{true: "accepted"}[a.Yes]})
	case status == http.StatusConflict && said.By != "":
		return c.unanswered(x, id, said.By+" answered first, with "+yes+". What you sent now counts for nothing.")
	case status == http.StatusConflict:
		return c.unanswered(x, id, "That was not offered. Nothing was answered.")
	case status == http.StatusNotFound:
		return c.unanswered(x, id, "That question is gone: its time was over, its call passed or ended meanwhile, or more became known of its values, and it is asked anew. Nothing was answered.")
	case status == http.StatusForbidden:
		return c.unanswered(x, id, "The gateway that asks does not hear it from here ("+said.Error+"): writ approve answers, in a terminal of your own.")
	}
	return c.unanswered(x, id, "It is not known whether the answer counts: "+cmp.Or(said.Error, "the gateway that asks gave no answer")+".")
}

// flash is what the page that an answer led to says of it.
type flash struct {
	at         string // the question at whose card it stands, "" for above all
	text, word string
	kept       bool   // something is kept from now on
	field      string // of that card, which was not filled in
	open       bool   // what is kept from now on was to be chosen, and keep was
	keep       approval.Keep
	told       string // the name of the page's own
}

// maxFlashes bounds those of one login. The oldest go first: they were read, most likely.
const maxFlashes = 20

// answered leads to the questions again: a page that a form led to could not be gone back to.
func (c *Console) answered(x *request, f flash) error {
	f.told = approval.NewID() // another tab of the same login is told nothing by it
	c.mu.Lock()
	x.login.flashes = append(x.login.flashes[max(0, len(x.login.flashes)+1-maxFlashes):], f)
	c.mu.Unlock()
	return x.leadTo("/approvals?told=" + f.told)
}

// unanswered is answered of what came to nothing: why is said at the question, if it is open, and
// at the fields of its form that are at fault. What was chosen there stays so.
func (c *Console) unanswered(x *request, id, why string, field ...string) error {
	return c.answered(x, flash{at: id, text: why, word: "unknown", field: strings.Join(field, ""),
		open: x.PostForm.Get("say") == "keep", keep: approval.Keep(x.PostForm.Get("keep"))})
}
