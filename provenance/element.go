package provenance

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// # What stands on a page, and how the user calls it (R28)
//
// A page's author names what stands on it, so a name is no evidence of what an element does. It is
// evidence of what the user would have pressed: on the site that he named he orders "book a table", and
// finds a button that is called so. What is asked of a name:
//
//   - It is his words. Each word of it, but for articles and the like, is one of his own in that turn, or
//     people say both for the same (a cart, a basket); so a name that says more is another one
//     ("Book a table and accept marketing"), and letters that look alike are other letters.
//   - He orders it. The name begins with an order of the contract's which his turn means, as a phrase
//     must be (Means); or the name as a whole is what an order to click is of (OrderOf). A link alone,
//     which leads on as an address does that he types, is called by a name of several words that he says
//     behind an article, by "the canteen page", or in quotation marks; not one that begins with such an order.
//   - Nothing beside is called by the same words (rivals), in a frame or out of it.
//
// Who can write on the site that the user named may call a link by his words: where the site has such
// an element there are two, and a person is asked. Where it has none the link has to stay on that site.

// Element is what a listing of a page says of something that can be clicked on.
type Element struct {
	Role, Name, Ref string
	Link            string // where a link leads, as the page has it
	// Plain says that it stands in no frame and no link, can be used, is not chosen already and shows nothing that
	// its name does not say.
	Plain bool
}

// mostElements bounds what is kept of one page, and longestCall the bytes of a turn that is held against it.
const (
	mostElements = 4000
	longestCall  = 8 << 10
)

// clickable are the roles of what is clicked on.
var clickable = wordSet("link button checkbox radio tab menuitem menuitemcheckbox menuitemradio option switch treeitem")

// Elements reads what can be clicked on out of a text which begins as Playwright's servers list a page:
// what the browser says of it, one line each, and the tree, one line a node. Nothing where a line of it is
// no such line: names stand in it as JSON writes a text, and all else in one line.
func Elements(text string) []Element {
	lines := strings.Split(text, "\n")
	at := slices.Index(lines, "### Snapshot")
	if at < 2 || lines[0] != "### Page" || at+1 >= len(lines) || lines[at+1] != "```yaml" ||
		slices.ContainsFunc(lines[1:at], func(l string) bool { return !strings.HasPrefix(l, "- ") }) {
		return nil
	}
	var t pageTree
	for _, line := range lines[at+2:] {
		if line == "```" {
			return t.all
		}
		if line != "" && !t.line(line) || len(t.all) > mostElements {
			return nil
		}
	}
	return nil // it does not end
}

// pageTree is a listing that is read line by line.
type pageTree struct {
	all  []Element
	open []openNode // the nodes that the next line may stand in
}

// openNode is a node, by where its line begins, its index among the elements, -1 for none, and the words of its name.
type openNode struct {
	indent, element int
	frame, link     bool
	has             map[string]bool
}

// nodeKey is the key of one: role, name and attributes.
var nodeKey = text.Pattern(`^([a-z]+)(?: ("(?:[^"\\]|\\.)*"))?((?: \[[^\[\]"]*\])*)$`)

// line reads one line, and reports whether it is one of such a tree.
func (t *pageTree) line(line string) bool {
	rest, is := strings.CutPrefix(strings.TrimLeft(line, " "), "- ")
	indent := len(line) - len(rest)
	for len(t.open) > 0 && t.open[len(t.open)-1].indent >= indent {
		t.open = t.open[:len(t.open)-1]
	}
	key, value := keyOf(rest)
	switch {
	case !is:
		return false
	case key == "/url":
		if n := len(t.open); n > 0 && t.open[n-1].element >= 0 {
			t.all[t.open[n-1].element].Link = value
		}
	case key == "text":
		t.shows(value)
	case key != "/placeholder":
		m := nodeKey().FindStringSubmatch(key)
		if m == nil {
			return false
		}
		name, named := strictjson.Of([]byte(m[2])).Text()
		if !named && m[2] != "" {
			return false
		}
		t.shows(name)
		t.add(m[1], name, m[3], indent)
		t.shows(value)
	}
	return true
}

// add adds a node, and opens it for what stands in it.
func (t *pageTree) add(role, name, marks string, indent int) {
	n := openNode{indent: indent, element: -1, frame: role == "iframe", link: role == "link"}
	if clickable[role] && name != "" {
		n.element, n.has = len(t.all), wordSet(strings.Join(wordsOf(name), " "))
		e := Element{Role: role, Name: name, Plain: !unusable().MatchString(marks) &&
			!slices.ContainsFunc(t.open, func(o openNode) bool { return o.frame || o.link })}
		if ref := elementRef().FindStringSubmatch(marks); ref != nil {
			e.Ref = ref[1]
		}
		t.all = append(t.all, e)
	}
	t.open = append(t.open, n)
}

// shows notes of the elements around a line what it shows: words that their names do not have.
func (t *pageTree) shows(text string) {
	words := wordsOf(text)
	for _, o := range t.open {
		if o.element < 0 || !t.all[o.element].Plain {
			continue
		}
		t.all[o.element].Plain = !slices.ContainsFunc(words, func(w string) bool { return !o.has[w] })
	}
}

// keyOf takes a line of YAML apart: its key, in single marks where it has to be, and its value.
func keyOf(line string) (key, value string) {
	if m := markedKey().FindStringSubmatch(line); m != nil {
		key, value = strings.ReplaceAll(m[1], "''", "'"), m[2]
	} else {
		key, value, _ = strings.Cut(line, ": ")
		key = strings.TrimSuffix(key, ":")
	}
	if !strings.HasPrefix(value, `"`) {
		return key, value
	}
	said, err := strconv.Unquote(value)
	if err != nil {
		return "", "" // no line of such a tree
	}
	return key, said
}

// Calling is how the user's words call an element, with the stretch of them that does.
type Calling struct {
	Start, End int    // the same for none
	Orders     bool   // he orders what it is called, or that it be clicked on
	As         string // the words of the name that say what it is: "Book now!" is "Book" a second time
}

// Clicks are the words of a contract by which users have something clicked on: the orders that a name may
// begin with, those that click on what they are of, and the nouns for such things.
type Clicks struct{ Names, Orders, Nouns []string }

// Calls says how a turn, in the user's own words, calls an element.
func Calls(own string, e Element, by Clicks) Calling {
	is := calls(own, e, by)
	is.As = strings.Join(slices.DeleteFunc(wordsOf(e.Name), func(w string) bool { return articles[w] || wordless[w] }), " ")
	return is
}

func calls(own string, e Element, by Clicks) Calling {
	if len(own) > longestCall || CheckText(strictjson.StringOf(e.Name)) != "" || !plainName().MatchString(e.Name) {
		return Calling{}
	}
	said := linksIn().ReplaceAllStringFunc(own, blotLink)
	if at := ordersAs(said, e.Name, by.Names); at.Orders {
		return at
	}
	way, orders := Calling{}, by.Orders
	if !leadsOn[e.Role] { // "open the report" is no "Report"
		orders = slices.DeleteFunc(slices.Clone(orders), func(o string) bool { return o == goTo })
	}
	for _, at := range typedAs(own, e.Name) {
		if orderOf(own, orders, by.Nouns, at.start, at.end, true) {
			return Calling{Start: at.start, End: at.end, Orders: true}
		}
		if e.Role == "link" && way.End == 0 && !calledAs(e.Name, by.Names) && sayable(own, e.Name, at) {
			way = Calling{Start: at.start, End: at.end}
		}
	}
	return way
}

// leadsOn are the roles of what shows something else, and goTo the orders that go there.
var leadsOn = wordSet("link tab treeitem")

const goTo = "<go to>"

// plainName is a name of letters, with what stands between words.
var plainName = text.Pattern(`^[\pL\pM\pN][\pL\pM\pN '’&.,!?…:-]*$`)

// ordersAs reports whether a name begins with an order which is meant, and is made of the user's words. Behind
// an order that ends in " …" it says more than that; one that ends in a full stop is all that is ordered (Wholly).
func ordersAs(said, name string, phrases []string) (is Calling) {
	if strings.ContainsFunc(name, unicode.IsNumber) || slices.ContainsFunc(wordsOf(name), negates) {
		return is
	}
	for _, p := range phrases {
		p, button := handedIn(p)
		p, whole := strings.CutSuffix(p, ".")
		means := Means
		if whole {
			means = Wholly
		}
		rest, ok := afterOrder(name, button)
		if !ok || parsed(p).reaches && len(wordsOf(rest)) == 0 {
			continue
		}
		eachOrder(said, 0, len(said), []string{p}, func(_, _ string, i, e int) bool {
			if madeOf(rest, said[e:]) && !listedAs(said[:i]) && fitsPlace(said[:i], true) && means(said, i, e) {
				is = Calling{Start: i, End: e, Orders: true}
			}
			return !is.Orders
		})
		if is.Orders {
			return is
		}
	}
	return is
}

// handedIn are an order and what the button is called that ends it: "<hand in> → submit" is of "report a fault", and
// of what has no arrow the order itself.
func handedIn(phrase string) (order, button string) {
	order, button, split := strings.Cut(phrase, " → ")
	if !split {
		button = strings.TrimSuffix(phrase, ".")
	}
	return order, button
}

// calledAs reports whether a name begins with one of some orders: "Opening hours" does not.
func calledAs(name string, phrases []string) bool {
	first, _, _ := strings.Cut(name, " ")
	return !isGerund(lower(first)) && slices.ContainsFunc(phrases, func(p string) bool {
		_, button := handedIn(p)
		_, ok := afterOrder(name, button)
		return ok
	})
}

// afterOrder is what stands in a name behind the longest wording of a phrase that it begins with.
func afterOrder(name, phrase string) (rest string, ok bool) {
	end := 0
	WordingOf(phrase).follow(name, 0, func(_ []string, e int) bool {
		if endsAt(name, e) {
			end = max(end, e)
		}
		return false
	})
	return name[end:], end > 0
}

// madeOf reports whether the words of a name behind an order are those that the order reaches, of what stands
// behind it where it is said, or what people say for the same. The first is what it is of, or behind a word that
// relates it: "add a comment for user Kim" is no "Add user Kim".
func madeOf(name, behind string) bool {
	words := slices.DeleteFunc(wordsOf(name), func(w string) bool { return articles[w] })
	has := []string(nil)
	for i, w := range words {
		if wordless[w] {
			continue
		}
		if has == nil {
			has = reached(behind)
		}
		at := slices.IndexFunc(has, func(h string) bool {
			return sameWord(w, h) || Ordering(w, oneThing) && Ordering(h, oneThing)
		})
		if at < 0 || i == 0 && slices.ContainsFunc(has[:at], func(h string) bool { return relating[h] && h != "of" }) {
			return false
		}
	}
	return true
}

// reached are the words behind an order that it reaches: none that he takes out, denies or says of something else.
func reached(behind string) (words []string) {
	for i := range behind {
		if len(words) == longestReach || !wordAt(behind, i) {
			continue
		}
		if !reachesTo(strings.TrimSuffix(strings.TrimRight(behind[:i], " \t"), " of"), nil) {
			return words
		}
		word, _, _ := strings.Cut(behind[i:], " ")
		words = append(words, wordsOf(word)...)
	}
	return words
}

// oneThing is what people call alike that no page calls otherwise.
var oneThing = []string{"<basket>"}

// wordless are the words of a name that say nothing of what it is.
var wordless = wordSet("to for of at with and your our now here")

// sameWord reports whether two words are one, or one of them of several of the other.
func sameWord(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || len(a) >= 3 && (a+"s" == b || a+"es" == b)
}

// typedAs are the places where a text has a name whole, or of several such things.
func typedAs(own, name string) (all []span) {
	low, names := strings.ToLower(own), []string{strings.ToLower(name)}
	if len(low) != len(own) || len(name) < 3 {
		return nil // other letters are longer in small
	}
	if names = append(names, names[0]+"s"); strings.HasSuffix(name, "s") && len(name) > 3 {
		names = append(names, strings.TrimSuffix(names[0], "s"))
	}
	for i := range low {
		if len(all) == mostSaid || !wordAt(own, i) {
			continue
		}
		for _, n := range names {
			if e := i + len(n); strings.HasPrefix(low[i:], n) && endsAt(own, e) {
				all = append(all, span{i, e})
				break
			}
		}
	}
	return all
}

// sayable reports whether what the user typed there names where a link leads: several words behind an
// article or a number that nothing goes on with ("the log out button" is a button), or what he set in quotation
// marks and begins as no order does; nothing that he takes out.
func sayable(own, name string, at span) bool {
	before := own[sentenceOf(own[:at.start]):at.start]
	if slices.ContainsFunc(wordsOf(before), func(w string) bool { return negates(w) || excluding[w] }) {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(before)
	words, named := strings.Fields(before), wordsOf(name)
	if next, _ := utf8.DecodeRuneInString(own[at.end:]); strings.ContainsRune(quotes, last) && strings.ContainsRune(quotes, next) {
		return len(named) > 0 && !turnsAway(named[0])
	}
	behind, _, _ := strings.Cut(strings.TrimLeft(own[at.end:], " "), " ")
	page := pages[bare(behind)] // "the canteen page"
	if len(words) == 0 || len(named) < 2 && !page || !page && !endsOrder(own[at.end:], false) && !relating[bare(behind)] {
		return false
	}
	w := bare(words[len(words)-1])
	return articles[w] || numeral().MatchString(w)
}

// pages are words for where a link leads.
var pages = wordSet("page tab section screen site seite page página pagina")

// rivals reports whether something else of a page is called by words of the user's that call an element,
// but for a link that leads to the same place.
func rivals(own string, all []Element, e Element, at Calling, by Clicks) bool {
	none := map[string]bool{} // what was read already: a page can have thousands of one name
	return slices.ContainsFunc(all, func(o Element) bool {
		if o.Ref == e.Ref && o.Ref != "" || o.Role == "link" && e.Role == "link" && o.Name == e.Name && o.Link == e.Link && o.Plain {
			return false
		}
		if key := o.Role + " " + strings.ToLower(o.Name); !none[key] {
			none[key] = true
		} else {
			return false
		}
		other := Calls(own, o, by)
		return other.Start < at.End && at.Start < other.End
	})
}

// Calls returns where the user's latest turn, or one behind it that only agrees, calls an element of a page,
// and nothing else there by the same words.
func (l *Ledger) Calls(all []Element, e Element, by Clicks) (at Quote, is Calling, ok bool) {
	if len(l.turns) == 0 {
		return at, is, false
	}
	last := l.turns[len(l.turns)-1]
	for _, t := range append([]turn{last}, l.agreed...) {
		if is = Calls(t.own.text, e, by); t.Evidence >= last.Evidence && is.End > is.Start {
			return Quote{t.Evidence, is.Start, is.End}, is, !rivals(t.own.text, all, e, is, by)
		}
	}
	return at, is, false
}

// LeadsWithin reports whether a link of a page at a host leads to that host. Of one that is ordered it may be
// what the page itself does ("#").
func (e Element) LeadsWithin(host string, ordered bool) bool {
	link := e.Link
	switch {
	case link == "" || strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' || r == '\\' }):
		return false
	case link[0] == '#':
		return ordered
	case strings.HasPrefix(link, "//"):
		link = "https:" + link
	}
	scheme := linkScheme().FindString(link)
	return scheme == "" || (scheme == "https:" || scheme == "http:") && sameSite(LinkHost(link), host)
}

// sameSite reports whether two hosts are one, but for a leading "www.".
func sameSite(a, b string) bool {
	return a != "" && strings.TrimPrefix(a, "www.") == strings.TrimPrefix(b, "www.")
}

var (
	// markedKey is a line whose key stands in single marks, and its value.
	markedKey  = text.Pattern(`^'((?:[^']|'')+)':?(?: (.*))?$`)
	elementRef = text.Pattern(`\[ref=([a-z0-9]+)\]`)
	// unusable are the marks of what cannot be used, or is chosen already: a click would undo it.
	unusable   = text.Pattern(`\[(?:checked|pressed|selected|disabled|aria-hidden)`)
	linkScheme = text.Pattern(`^[A-Za-z][A-Za-z0-9+.-]*:`)
)
