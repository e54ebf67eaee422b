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
var channels = []struct {
	name, forms string // none of its own, of mixed
	user        bool   // says it, else a tool
}{
	{"user", "user_forms", true}, {"self", "self_forms", true}, {"record", "record_forms", false},
	{"text", "text_forms", false}, {"mixed", "", false}, {"apart", "apart_forms", true},
}

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
	q := pick(d, data.Questions)
	c := &chain{channel: i % len(channels), predicate: q.Words}
	person := false
	switch k := d.n(3); {
	case channels[c.channel].name == "self":
		c.subject = "me"
	case k == 0:
		c.subject, person = value(d, "person"), true
	case k == 1:
		c.subject = value(d, "company")
	default:
		c.subject = value(d, "project")
	}
	for drawn := length == 0; drawn && (length < 2 || length < 10 && d.in(percentLonger)); {
		length++
	}
	tool, at := oneOf(d, "house_tools"), beginning.Add(time.Duration(d.n(60*24))*time.Hour)
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
			v := value(d, q.Value)
			if !strings.Contains(c.subject, v) && !slices.ContainsFunc(c.updates[max(0, k-8):], func(o update) bool { return strings.Contains(o.value, v) || strings.Contains(v, o.value) }) {
				u.value = v
			}
		}
		s, a, v := c.subject, c.predicate, u.value
		u.note = Note{Subject: s, Predicate: a, Value: v}
		u.means = []string{v}
		if k > 0 && (i+k)%otherwise == 0 && spelled {
			switch part := d.n(5); {
			case part < 2 && s != "me":
				s = respelled(d, s, person)
			case part == 2:
				a = pick(d, []string{strings.ReplaceAll(a, " ", "_"), strings.ToUpper(a[:1]) + a[1:], strings.ReplaceAll(a, " ", "")})
			default:
				v = respelled(d, v, q.Value == "person")
			}
			u.means = append(u.means, v)
			if d.in(50) {
				u.note = Note{Subject: s, Predicate: a, Value: v}
			}
		}
		u.note.Text = caption(u.note)
		say := func(source, forms string, after time.Duration) {
			form, level := oneOf(d, forms), LevelTool
			if source == "user" {
				form, level = oneOf(d, "before_it")+form+oneOf(d, "after_it"), LevelUser
			}
			u.said = append(u.said, Evidence{Source: source, Level: level, At: at.Add(after), Text: strings.NewReplacer("{s}", s, "{a}", a,
				"{p}", strings.ReplaceAll(a, " ", "_"), "{v}", v, "{o}", value(d, "person"), "{w}", value(d, q.Value), "{n}", strconv.Itoa(1000+d.n(900))).Replace(form)})
		}
		source, channel := tool, channels[c.channel]
		mixed := channel.forms == ""
		if mixed {
			if channel = channels[2]; d.in(percentUser) {
				channel = channels[0]
			}
		}
		if channel.user {
			source = "user"
		}
		say(source, channel.forms, 0)
		if mixed && d.in(50) {
			say(oneOf(d, "house_tools"), "text_forms", 5*time.Minute)
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

// The ways people write what others write otherwise. Each returns its argument
// where it has nothing to change.
var (
	plainLetters = strings.NewReplacer("ø", "o", "ö", "o", "ü", "u", "ñ", "n", "É", "E", "ő", "o", "é", "e")
	abbreviated  = strings.NewReplacer(" Street", " St.", " Road", " Rd.", " Avenue", " Ave.", " Ltd", " Ltd.", " Inc", ", Inc.", "Room ", "Rm ", "Project ", "")
	spellings    = []func(d *draw, s string, person bool) string{
		func(_ *draw, s string, _ bool) string { return strings.ToLower(s) },
		func(_ *draw, s string, _ bool) string { return plainLetters.Replace(s) },
		func(_ *draw, s string, _ bool) string { return abbreviated.Replace(s) },
		func(_ *draw, s string, _ bool) string { return strings.Replace(s, " ", "  ", 1) },
		func(_ *draw, s string, _ bool) string { return strings.Replace(s, "-", " ", 1) },
		func(_ *draw, s string, _ bool) string { return strings.Replace(s, ",", " ", 1) },
		func(d *draw, s string, person bool) string {
			if person {
				return pick(d, []string{"Dr. ", "Ms ", "Mr. ", "Prof. "}) + s
			}
			return s
		},
	}
)

// respelled is the same in another spelling; where there is none that people
// would use, it is the same.
func respelled(d *draw, s string, person bool) string {
	for _, i := range some(d, len(spellings), spellings) {
		if out := i(d, s, person); out != s {
			return out
		}
	}
	return s
}
