package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Chains is how many chains of values a seed has; there are about 4.7 values
// to each.
const Chains = 187

// The channels of a chain: who states its values. The aims are for the first four,
// where each correction has the level of what it corrects. In mixed, a user and
// tools correct each other; in apart, the subject stands in the sentence before.
var channels = []string{"user", "self", "record", "text", "mixed", "apart"}

const aimed = 4

// The gaps between a value and its correction.
var gaps = []struct {
	name        string
	least, most time.Duration
}{{"same day", 30 * time.Minute, 8 * time.Hour}, {"same week", 24 * time.Hour, 6 * 24 * time.Hour}, {"months", 40 * 24 * time.Hour, 200 * 24 * time.Hour}}

const (
	percentLonger = 74 // how many chains of n values have one more, up to ten
	percentReturn = 12 // how often a value comes back that there was before
	percentUser   = 60 // in mixed
	otherwise     = 5  // with other spellings, every fifth correction is in one
)

// update is one value of a chain: what is so from then on, who says it, and what
// the agent files of it.
type update struct {
	value string
	means []string // the value and its other spelling
	gap   int      // of gaps; -1 for a chain's first
	said  []Evidence
	note  Note
}

// chain is one attribute of one subject, and its values in their order.
type chain struct {
	channel            int
	subject, predicate string
	updates            []update
}

func (c *chain) asked() string {
	if c.subject == "me" {
		return "what is my " + c.predicate
	}
	return "what is the " + c.predicate + " of " + c.subject
}

// newChain draws a chain of a number of values, 0 for one that is drawn. With
// other spellings, every fifth correction writes subject, attribute or value
// otherwise than before, and half of the time the agent files it in those words.
func newChain(seed uint64, i, length int, spelled bool) *chain {
	d := newDraw(seed, "chain-"+strconv.Itoa(i))
	q := questions[d.n(len(questions))]
	c := &chain{channel: i % len(channels), predicate: q.words}
	person := false
	switch k := d.n(3); {
	case channels[c.channel] == "self":
		c.subject = "me"
	case k == 0:
		c.subject, person = personName(d), true
	case k == 1:
		c.subject = companyName(d)
	default:
		c.subject = "Project " + pick(d, data.Projects)
	}
	for drawn := length == 0; drawn && (length < 2 || length < 10 && d.in(percentLonger)); {
		length++
	}
	tool, at := pick(d, data.HouseTools), beginning.Add(time.Duration(d.n(60*24))*time.Hour)
	for k := range length {
		u := update{gap: -1}
		if k > 0 {
			u.gap = d.n(len(gaps))
			g := gaps[u.gap]
			at = at.Add(g.least + time.Duration(d.n(int((g.most-g.least)/time.Minute)))*time.Minute)
		}
		if k >= 2 && d.in(percentReturn) {
			u.value = c.updates[d.n(k-1)].value
		}
		for u.value == "" || k > 0 && u.value == c.updates[k-1].value {
			// None is a part of one shortly before: what is shown is looked for by its text.
			v := q.value(d)
			if !strings.Contains(c.subject, v) && !slices.ContainsFunc(c.updates[max(0, k-8):], func(o update) bool { return strings.Contains(o.value, v) || strings.Contains(v, o.value) }) {
				u.value = v
			}
		}
		s, a, v := c.subject, c.predicate, u.value
		u.note = Note{Subject: s, Predicate: a, Value: v}
		u.means = []string{v}
		if k > 0 && (i+k)%otherwise == 0 && spelled {
			isName := q.words == "account manager" || q.words == "on-call engineer" || q.words == "deputy"
			switch part := d.n(5); {
			case part < 2 && s != "me":
				s = respelled(d, s, person)
			case part == 2:
				a = pick(d, []string{strings.ReplaceAll(a, " ", "_"), strings.ToUpper(a[:1]) + a[1:], strings.ReplaceAll(a, " ", "")})
			default:
				v = respelled(d, v, isName)
			}
			u.means = append(u.means, v)
			if d.in(50) {
				u.note = Note{Subject: s, Predicate: a, Value: v}
			}
		}
		u.note.Text = caption(u.note)
		say := func(source string, level int, forms []string, after time.Duration) {
			form := pick(d, forms)
			if level == LevelUser {
				form = pick(d, data.BeforeIt) + form + pick(d, data.AfterIt)
			}
			u.said = append(u.said, Evidence{Source: source, Level: level, At: at.Add(after), Text: strings.NewReplacer("{s}", s, "{a}", a,
				"{p}", strings.ReplaceAll(a, " ", "_"), "{v}", v, "{o}", personName(d), "{w}", q.value(d), "{n}", strconv.Itoa(1000+d.n(900))).Replace(form)})
		}
		switch channels[c.channel] {
		case "user":
			say("user", LevelUser, data.UserForms, 0)
		case "self":
			say("user", LevelUser, data.SelfForms, 0)
		case "apart":
			say("user", LevelUser, data.ApartForms, 0)
		case "record":
			say(tool, LevelTool, data.RecordForms, 0)
		case "text":
			say(tool, LevelTool, data.TextForms, 0)
		default:
			if d.in(percentUser) {
				say("user", LevelUser, data.UserForms, 0)
			} else {
				say(tool, LevelTool, data.RecordForms, 0)
			}
			if d.in(50) {
				say(pick(d, data.HouseTools), LevelTool, data.TextForms, 5*time.Minute)
			}
		}
		c.updates = append(c.updates, u)
	}
	return c
}

// caption is the sentence in which an agent says what it files.
func caption(n Note) string {
	if n.Subject == "me" {
		return fmt.Sprintf("The user's %s is %s", n.Predicate, n.Value)
	}
	return fmt.Sprintf("%s's %s is %s", n.Subject, n.Predicate, n.Value)
}
