package console

import (
	"cmp"
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
)

// card is one question as it is shown.
type card struct {
	approval.Shown
	Long   bool // it is not shown whole, and nobody says yes to it here
	Offers []offer
	Fault  string
	// Inside are, by pointer, the texts in which values stand that nothing holds whole.
	Inside map[string]*origin
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
		lines := strings.Split(strings.TrimRight(rows, "\n"), "\n")
		out = append(out, offer{o.Keep, o.Choice(), lines[1:]})
	}
	return out
}

type offer struct {
	Keep  approval.Keep
	Words string
	Rows  []string
}

// approvalsPage are the questions that wait.
type approvalsPage struct {
	Cards     []card
	IDs       string
	More      int // that are not shown
	Confirmed bool
	Said      string // what became of an answer
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
	return append(all, c.o.Elsewhere.Open(ctx, fresh)...), changed
}

// waiting are the questions as this login sees them.
func (c *Console) waiting(x *request) *approvalsPage {
	c.mu.Lock()
	p := &approvalsPage{Confirmed: x.login.confirmed, Tail: "/events?for=approvals"}
	c.mu.Unlock()
	var ids []string
	drawn := 0
	open, _ := c.open(x.Context(), true)
	for _, q := range open {
		ids = append(ids, q.ID)
		if len(p.Cards) == maxCards || drawn > maxPage {
			p.More++
			continue
		}
		n := weight(&q)
		if n > maxDrawn {
			q.Question.Server, q.Question.Tool = short(q.Question.Server, 200), short(q.Question.Tool, 200)
			p.Cards = append(p.Cards, card{Shown: approval.Shown{Question: q.Question}, Long: true})
			continue
		}
		one := card{Shown: q}
		one.Offers, drawn = offers(&q), drawn+n
		one.Inside = c.inside(x.Context(), &q)
		p.Cards = append(p.Cards, one)
	}
	p.IDs = strings.Join(ids, " ")
	return p
}

// inside finds the texts that a question's values stand in, where nothing holds them whole:
// whose words they are a person can see there. What cannot be read is left out.
func (c *Console) inside(ctx context.Context, q *approval.Shown) map[string]*origin {
	var seen []sight
	out, all := map[string]*origin{}, map[string]*wanted{}
	for _, v := range q.Values {
		if v.Value == "" || len(v.Seen) > 0 {
			continue
		}
		if seen == nil {
			if seen, _ = c.sights(ctx, q.Session); len(seen) == 0 {
				return nil
			}
		}
		all[v.Pointer] = wants([]byte(v.Value), math.MaxUint64)
	}
	sought(ctx, slices.Collect(maps.Values(all)), seen)
	for pointer, w := range all {
		if w.in != nil {
			out[pointer] = &origin{w.in.link(q.Session, w.place, w.words), short(w.in.tool+" "+w.place, 1000)}
		}
	}
	return out
}

// tell says on the page what became of the answer that led to it.
func (c *Console) tell(p *approvalsPage, x *request) {
	c.mu.Lock()
	f := x.login.flashes[x.asked("told")]
	delete(x.login.flashes, x.asked("told"))
	c.mu.Unlock()
	for i := range p.Cards {
		if p.Cards[i].ID == f.at {
			p.Cards[i].Fault, f.text = f.text, ""
		}
	}
	p.Said, p.Word = f.text, f.word
}

// answer is the one place of the console where a person says yes or no.
func (c *Console) answer(x *request) error {
	id := strings.ToLower(x.PathValue("id"))
	a := approval.Answer{By: c.o.By, Label: writ.User}
	switch x.PostForm.Get("say") {
	case "no":
	case "yes":
		a.Yes = true
	case "keep":
		a.Yes, a.Keep = true, approval.Keep(x.PostForm.Get("keep"))
		if a.Keep == "" {
			return c.unanswered(x, id, "Choose what is kept from now on first. Nothing was answered.")
		}
	default:
		return c.unanswered(x, id, "Neither yes nor no was said. Nothing was answered.")
	}
	if a.Yes {
		open, _ := c.open(x.Context(), false)
		i := slices.IndexFunc(open, func(q approval.Shown) bool { return q.ID == id })
		if i >= 0 && long(&open[i]) {
			return c.unanswered(x, id, "It is too long to be shown whole here, and nobody says yes to what he did not see. Nothing was answered.")
		}
		if i >= 0 && a.Keep != "" && !slices.ContainsFunc(offers(&open[i]), func(o offer) bool { return o.Keep == a.Keep }) {
			return c.unanswered(x, id, "That was not offered. Nothing was answered.")
		}
		ok, over := c.confirm(x.login, x.PostForm.Get("code"))
		if over {
			c.end(x.login)
			c.out(x, "The code was wrong too often. You were signed out, and nothing was answered.")
			return nil
		}
		if !ok {
			return c.unanswered(x, id, "That is not the code. The first yes of a login needs the one that stands in the terminal beside the link, or that writ console --code prints. Nothing was answered.")
		}
	}
	said, status := approval.Reply{}, 0
	if own, _ := c.o.Queue.Asked(id); own.ID != "" {
		status, said = c.o.Queue.Reply(id, a)
	} else {
		status, said = c.o.Elsewhere.Reply(x.Context(), id, a)
	}
	yes := map[bool]string{true: "yes", false: "no"}[said.Yes]
	late := strings.TrimRight(" "+said.Late(), " ")
	switch {
	case status == http.StatusOK && said.Error != "":
		return c.answered(x, flash{"", "Your yes is on record for this once. " + said.Error + "." + late, "asked"})
	case status == http.StatusOK && a.Keep != "":
		return c.answered(x, flash{"", "You said yes, from now on. It is on record; writ grown list shows what was kept, and writ grown remove takes it back." + late, "accepted"})
	case status == http.StatusOK:
		return c.answered(x, flash{"", "You said " + yes + ". It is on record." + late, map[bool]string{true: "accepted", false: "refused"}[a.Yes]})
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

// flash is what the next page says of an answer, once.
type flash struct {
	at         string // the question at whose card it stands, "" for above all
	text, word string
}

// answered leads to the questions again: a page that a form led to could not be gone back to.
func (c *Console) answered(x *request, f flash) error {
	told := newCode() // another tab of the same login is told nothing by it
	c.mu.Lock()
	if len(x.login.flashes) > 20 {
		clear(x.login.flashes)
	}
	x.login.flashes[told] = f
	c.mu.Unlock()
	x.w.Header().Set("Location", "/approvals?told="+told)
	x.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// unanswered is answered of what came to nothing: why is said at the question, if it is open.
func (c *Console) unanswered(x *request, id, why string) error {
	return c.answered(x, flash{id, why, "unknown"})
}
