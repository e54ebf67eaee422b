package claim

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-project/writ/internal/text"
)

// MarkRules is the version of the rules by which items are marked. It changes
// whenever one item may be marked otherwise, so that marks on record are made
// again only by the rules that made them.
const MarkRules = 2

// hold marks what an item says beyond its quote, and what it leaves out of the
// sentence it quotes from.
//
// It compares what can be told without understanding: addresses, identifiers,
// numbers with their units and bounds, dates, names, words like all and only,
// and negations. A mark is for the eyes of a person and refuses nothing: a true
// sentence may be marked, and one that is false in plain words is not.
func (s *Source) hold(item *Item) {
	q := item.Quote
	item.Within = s.shown(q)
	from, to := s.within(q, 0)
	plain := s.plainly(q.Start, q.End)
	german := isGerman(item.Text + " " + plain)
	text, quote := read(item.Text, german), read(plain, german)
	around := quote
	if from < q.Start || q.End < to {
		around = read(s.plainly(from, to), german)
	}
	item.NotInQuote, item.LeftOut = text.beyond(quote), nil

	// A bound is of one number: it may be left out, or be another one.
	bounds := map[string]class{}
	for _, f := range text.facts {
		bounds[f.key] = max(bounds[f.key], f.bound)
	}
	for _, f := range quote.facts {
		if b, told := bounds[f.key]; told && b == noClass && f.bound != noClass {
			item.LeftOut = append(item.LeftOut, f.bounding)
		}
	}
	if len(quote.only) > 0 && len(text.only) == 0 {
		item.LeftOut = append(item.LeftOut, quote.only[0])
	}
	added, dropped := unlike(text, around)
	item.NotInQuote = append(item.NotInQuote, added...)
	item.LeftOut = append(item.LeftOut, dropped...)
	item.NotInQuote, item.LeftOut = marks(item.NotInQuote), marks(item.LeftOut)
}

// marks are the first few, each once.
func marks(words []string) (out []string) {
	for _, w := range words {
		if len(out) < 20 && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// reading is a text as far as it is compared.
type reading struct {
	text  string
	words []word
	facts []fact
	// has is everything a fact may be found by: the keys of facts, and words.
	has map[string]bool
	// behind has the keys of the facts a word stands behind, by their kind and it.
	behind map[string]map[string]bool
	// names are those of people and things, as far as they are told from words;
	// stems are those of all words.
	names []string
	stems map[string]bool
	// only are the words that say that there is nothing else, as they stand.
	only []string
	// lessening are words by which something fails, is missing or is 0, and
	// remaining those by which it is as it was.
	lessening, remaining []string
	german               bool // every noun has a capital letter
}

// word is a word, a number, an address or the sign of a unit.
type word struct {
	text  string // as it stands
	at    int    // where
	fold  string // in small letters, without what nobody sees
	start bool   // of a sentence, or of a part of one that punctuation sets off
	begin bool   // of a sentence
	neg   bool   // it negates
	fails bool   // as good as that, on the other side
	under bool   // what a negation is about
	addr  bool
}

// fact is something that must be found in a quote.
type fact struct {
	key      string // its kind, and what it is however it is spelt
	text     string // as it stands
	next     string // the word behind it, as it is compared
	with     string // it with that word, as they stand
	weak     bool   // found, and not asked for
	begin    bool   // a word that begins a sentence, and may be a name
	bound    class
	bounding string // the words of the bound
}

// address matches what leads somewhere: a mail address, a URL, a host, a path.
var address = text.Pattern(`@|://|\\|^~?/[\pL\pN]|/.*/|\pL[\pL\pN]*\.\pL{2,}`)

func leads(s string) bool { return address().MatchString(text.Fold(s, text.Compatible)) }

// measured matches a number with its unit written on to it.
var measured = text.Pattern(`^([^\pL]*\p{Nd})(\pL+)$`)

// inWord reports whether a character makes a word of what it stands in.
func inWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.Sc) || r == '%' || r == '‰'
}

// places are where addresses stand.
func places(text string) (out []span) {
	outer := func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"<>()[]{}|“”„«»‹›", r)
	}
	for i := 0; i < len(text); {
		n := strings.IndexFunc(text[i:], outer)
		if n < 0 {
			n = len(text) - i
		}
		f := strings.TrimRight(text[i:i+n], ".,;:!?'’*_…")
		if left := strings.TrimLeft(f, "'‘*_"); leads(left) {
			out = append(out, span{i + len(f) - len(left), i + len(f)})
		}
		_, size := utf8.DecodeRuneInString(text[i+n:])
		i += n + size
	}
	return out
}

// split cuts a text into words, by the rule of where a quote may begin and end;
// an address is one word.
func split(text string) (out []word) {
	s, stop := TextSource([]byte(text), len(text))
	if stop != nil {
		return nil
	}
	places := places(text)
	begins := func(i int) bool { return len(places) > 0 && places[0].start == i }
	start, begin := true, true
	for i := 0; i < len(text); {
		w := word{at: i, start: start, begin: begin}
		j := i
		if begins(i) {
			w.addr = true
			j, places = places[0].end, places[1:]
		} else {
			for j++; j < len(text) && !s.boundary(j) && !begins(j); {
				j++
			}
		}
		w.text = text[i:j]
		i = j
		if !w.addr && !strings.ContainsFunc(w.text, inWord) {
			if strings.ContainsAny(w.text, ".!?:;,()\n–—…。、") {
				start = true
			}
			begin = begin || strings.ContainsAny(w.text, ".!?:\n…。\"“„*")
			continue
		}
		w.fold = folded(w.text)
		if m := measured().FindStringSubmatch(w.text); m != nil && units()[folded(m[2])] != "" {
			out = append(out, word{text: m[1], at: w.at, fold: folded(m[1]), start: w.start, begin: w.begin})
			w = word{text: m[2], at: w.at + len(m[1]), fold: folded(m[2])}
		}
		out = append(out, w)
		start, begin = false, false
	}
	return out
}

// folded is a word in small letters, without what nobody sees.
func folded(s string) string {
	return text.Fold(strings.Map(func(r rune) rune {
		switch {
		case text.Ignored(r):
			return -1
		case strings.ContainsRune(text.Apostrophes, r):
			return '\''
		}
		return r
	}, s), text.Careless)
}

func read(text string, german bool) *reading {
	r := &reading{text: text, words: split(text), has: map[string]bool{}, stems: map[string]bool{}, behind: map[string]map[string]bool{}, german: german}
	r.gather()
	r.negate()
	return r
}

func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M) && r != '\'' && r != '-' })
}

// phrase is the class of the longest phrase that begins with the i-th word, and
// its length.
func (r *reading) phrase(i int) (class, int) {
	for n := min(phraseWords, len(r.words)-i); n > 0; n-- {
		var p []string
		for j := i; j < i+n; j++ {
			if j > i && r.words[j].start {
				p = nil
				break
			}
			p = append(p, r.words[j].fold)
		}
		switch c := phrases()[strings.Join(p, " ")]; {
		case n == 1 && p[0] == "no" && i+1 < len(r.words) && r.number(i+1) != "":
			return neither, n // No. 5
		case c != noClass:
			return c, n
		}
	}
	if strings.HasSuffix(r.words[i].fold, "n't") || strings.ContainsAny(r.words[i].fold, "不没沒未無无") {
		return negates, 1
	}
	return noClass, 1
}

// gather collects the facts.
func (r *reading) gather() {
	for _, w := range r.words {
		r.index(w)
	}
	var bound class
	bounding := ""
	for i := 0; i < len(r.words); {
		c, n := r.phrase(i)
		r.note(c, i, n)
		switch {
		case c >= atLeast && c <= lessThan:
			bound, bounding = c, r.phrased(i, n)
			i += n
			continue
		case c != noClass && c != lessens && c != fails && c != remains:
			bound = noClass
			i += n
			continue
		}
		f, n := r.fact(i)
		for _, g := range f {
			if g.key[0] == 'n' {
				g.bound, g.bounding = bound, bounding
				r.has[fmt.Sprint("b:", bound, g.key)] = true
			}
			r.add(g, i, i+n)
		}
		if len(f) == 0 || f[0].key[0] != 'u' {
			bound = noClass // it stands before the number, or the sign of its currency
		}
		i += n
	}
}

// index says by what a word is found.
func (r *reading) index(w word) {
	r.has["w:"+w.fold], r.stems[stem(w.fold)] = true, true
	for _, p := range strings.FieldsFunc(w.fold, apart) {
		r.has["w:"+p] = true
		r.has["u:"+units()[p]] = true
		if n, ok := numbers()[p]; ok {
			r.has["n:"+n] = true
		}
	}
	r.has["u:"+units()[w.fold]] = true
	r.has["m:"+months()[w.fold]] = true
	if !w.addr {
		return
	}
	if name, at, ok := strings.Cut(w.text, "@"); ok {
		r.has[place(at)] = true
		r.names = append(r.names, strings.FieldsFunc(strings.ToLower(name), apart)...)
	} else if _, host, ok := strings.Cut(w.text, "://"); ok {
		host, _, _ = strings.Cut(host, "/")
		r.has[place(host)] = true
	}
	// What an address is made of can be named.
	for _, p := range split(strings.Map(func(c rune) rune {
		if strings.ContainsRune("@/\\?&=#.:", c) {
			return ' '
		}
		return c
	}, w.text)) {
		r.has["i:"+norm.NFC.String(p.text)] = true
	}
}

// note keeps what the phrase of n words at the i-th does to its sentence.
func (r *reading) note(c class, i, n int) {
	w := &r.words[i]
	switch c {
	case negates:
		w.neg = true
	case fails:
		w.fails = true
		r.lessening = append(r.lessening, w.fold)
	case lessens:
		r.lessening = append(r.lessening, w.fold)
	case remains:
		r.remaining = append(r.remaining, w.fold)
	case only:
		r.only = append(r.only, r.phrased(i, n))
	}
	if c == all || c == only {
		r.add(fact{key: fmt.Sprint("q:", c), text: r.phrased(i, n)}, i, i+n)
	}
}

func (r *reading) phrased(i, n int) string {
	last := r.words[i+n-1]
	return r.text[r.words[i].at : last.at+len(last.text)]
}

func (r *reading) add(f fact, at, next int) {
	for next < len(r.words) && helpers()[r.words[next].fold] && !r.words[next].start {
		next++
	}
	if next < len(r.words) && !r.words[next].start && isWord(r.words[next].fold) && !common()[r.words[next].fold] {
		f.next = r.words[next].fold
		f.with = r.text[r.words[at].at : r.words[next].at+len(r.words[next].text)]
	}
	r.facts = append(r.facts, f)
	r.has[f.key] = true
	if f.next != "" {
		k := f.key[:1] + f.next
		if r.behind[k] == nil {
			r.behind[k] = map[string]bool{}
		}
		r.behind[k][f.key] = true
	}
	if name, ok := strings.CutPrefix(f.key, "w:"); ok && !f.weak {
		r.names = append(r.names, name)
	}
	if y, ok := strings.CutPrefix(f.key, "y:"); ok {
		r.has["n:"+y] = true
	}
}

// fact reads what stands at the i-th word, and how many words it takes.
func (r *reading) fact(i int) ([]fact, int) {
	w := r.words[i]
	if w.addr {
		return []fact{{key: place(w.text), text: w.text}}, 1
	}
	if f, n := r.date(i); n > 0 {
		return f, n
	}
	if v := r.number(i); v != "" {
		return r.quantity(i, v)
	}
	if u := units()[w.fold]; u != "" && (!isWord(w.fold) || w.text == strings.ToUpper(w.text)) && i+1 < len(r.words) && !r.words[i+1].start && r.number(i+1) != "" { // $ 12
		return []fact{{key: "u:" + u, text: w.text}}, 1
	}
	if strings.ContainsFunc(w.text, unicode.IsNumber) || strings.Contains(w.text, "_") {
		return []fact{{key: "i:" + norm.NFC.String(w.text), text: w.text}}, 1
	}
	if f, ok := r.name(i); ok {
		return []fact{f}, 1
	}
	return nil, 1
}

// place is the key of an address; of one without a path capitals say nothing.
func place(s string) string {
	if s = norm.NFC.String(strings.TrimRight(s, "/")); !strings.Contains(s, "/") {
		s = strings.ToLower(s)
	}
	return "a:" + s
}

// name reads a word with a capital letter. One that begins a sentence is not
// asked for, nor is one in German, where all nouns have one.
func (r *reading) name(i int) (fact, bool) {
	w := r.words[i]
	stem := strings.TrimSuffix(w.fold, "'s")
	first, n := utf8.DecodeRuneInString(w.text)
	if !unicode.IsUpper(first) || common()[stem] {
		return fact{}, false
	}
	plain := w.begin || r.german
	if m := months()[stem]; m != "" && !plain {
		return fact{key: "m:" + m, text: w.text}, true
	}
	inner := strings.ContainsFunc(w.text[n:], unicode.IsUpper) // HR, GitHub
	return fact{key: "w:" + stem, text: w.text, weak: plain && !inner, begin: w.begin && !r.german}, true
}

// beyond returns what of a sentence is not found in its quote: its facts, and
// pairs of a fact and the word behind it where the quote says that word of
// others only.
//
// A name that begins the sentence is not told from another word there. It is
// taken for one where the quote names somebody the sentence does not.
func (r *reading) beyond(quote *reading) (out []string) {
	unnamed := len(quote.names) > 0 && !slices.ContainsFunc(quote.names, func(n string) bool { return r.has["w:"+n] })
	for i, f := range r.facts {
		switch found := quote.found(f.key); {
		case found:
			if f.bound != noClass && !quote.has[fmt.Sprint("b:", f.bound, f.key)] {
				out = append(out, f.bounding)
			}
		case f.key[0] == 'y' && i > 0 && r.facts[i-1].key[0] == 'd' && !quote.found(r.facts[i-1].key):
			continue // its date is marked as a whole
		case !f.weak || f.begin && unnamed && !quote.stems[stem(f.key[2:])]:
			out = append(out, f.text)
			continue
		}
		if f.next == "" || f.weak && f.key[0] == 'n' {
			continue
		}
		if same, told := quote.followed(f); told && !same {
			out = append(out, f.with)
		}
	}
	return out
}

// followed reports whether the word behind a fact stands behind facts of its
// kind here, and behind this one.
func (r *reading) followed(f fact) (same, told bool) {
	keys := r.behind[f.key[:1]+f.next]
	return keys[f.key], len(keys) > 0
}

// misses reports whether a text lacks one of the words.
func (r *reading) misses(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return !r.has["w:"+w] })
}

func (r *reading) found(key string) bool {
	if r.has[key] {
		return true
	}
	kind, v, _ := strings.Cut(key, ":")
	switch kind {
	case "y":
		return r.has["n:"+v]
	case "w":
		if u := units()[v]; u != "" && r.has["u:"+u] || r.has["w:"+v+"s"] || r.has["w:"+strings.TrimSuffix(v, "s")] {
			return true
		}
		parts := strings.FieldsFunc(v, apart)
		return len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return !r.has["w:"+p] })
	}
	return false
}

// negate finds what each negation is about: the words behind it, or before it
// where it ends its part of the sentence. A false or a null of JSON is about its name.
func (r *reading) negate() {
	for i, w := range r.words {
		if !w.neg && !w.fails {
			continue
		}
		left := 3
		back := w.fold == "false" || w.fold == "empty" || w.fold == "null"
		for j := i + 1; !back && j < len(r.words) && left > 0 && !r.words[j].start; j++ {
			if r.words[j].tells() {
				r.words[j].under = true
				left--
			}
		}
		for j := i - 1; left == 3 && j >= max(0, i-2); j-- {
			r.words[j].under = r.words[j].under || r.words[j].tells()
			if r.words[j].start {
				break
			}
		}
	}
}

func (w *word) tells() bool {
	return !w.addr && !w.neg && !common()[w.fold] && utf8.RuneCountInString(w.fold) > 2
}

func (r *reading) negations() (out []string) {
	for _, w := range r.words {
		if w.neg {
			out = append(out, w.text)
		}
	}
	return out
}

// elsewhere reports whether the part of the quoted sentence that a sentence is about
// has no negation: the one with the most of its words, and at least two.
func (r *reading) elsewhere(text *reading) bool {
	best, clean := 1, false
	for i := 0; i < len(r.words); {
		n, neg, j := 0, false, i
		for ; j < len(r.words) && (j == i || !r.words[j].start); j++ {
			neg = neg || r.words[j].neg
			if r.words[j].tells() && text.has["w:"+r.words[j].fold] {
				n++
			}
		}
		if n > best {
			best, clean = n, !neg
		} else if n == best {
			clean = clean && !neg
		}
		i = j
	}
	return clean
}

// unlike returns the negations by which a sentence and the text around its quote
// differ, none where they negate the same.
func unlike(text, around *reading) (added, dropped []string) {
	added, dropped = text.negations(), around.negations()
	word, together := turned(text, around)
	switch {
	case together:
		return nil, nil
	case len(added)+len(dropped) == 0:
		if word != "" { // by a prefix, or by a word like failed
			added = []string{word}
		}
	case len(dropped) == 0: // the text may lack what is said not to be there, or still be as it was
		if text.misses(around.lessening) || word == "" && text.misses(around.remaining) {
			return nil, nil
		}
	case word == "" && (len(added) > 0 || around.misses(text.lessening) || around.misses(text.remaining) || around.elsewhere(text)):
		return nil, nil
	}
	return added, dropped
}

// turned compares what two texts negate. It returns the word of the first that
// only one of them negates, and whether they negate a word together.
func turned(a, b *reading) (word string, together bool) {
	negA, plainA := a.about(b)
	negB, plainB := b.about(a)
	for w := range negA {
		if negB[w] != "" {
			return "", true
		}
	}
	prefixed := map[string]bool{} // words of a that are their own negation
	for base, w := range negA {
		prefixed[w] = prefixed[w] || stem(w) != base && plainB[base] != ""
	}
	for _, w := range a.words {
		k := stem(w.fold)
		if w.tells() && (negA[k] != "" && plainB[k] != "" && plainA[k] == "" || plainA[k] != "" && negB[k] != "" && plainB[k] == "") {
			return w.text, false
		}
		if prefixed[w.fold] {
			return w.text, false
		}
	}
	return "", false
}

// about returns what a text negates, by a word or by the prefix of one that the
// other text has without it, and what it states: the words by their stems.
func (r *reading) about(other *reading) (negated, stated map[string]string) {
	put := map[bool]map[string]string{true: {}, false: {}} // by whether it is negated
	for _, w := range r.words {
		if !w.tells() || w.fails {
			continue
		}
		whole, base := w.fold, ""
		for _, p := range []string{"un", "non-", "non", "dis", "in", "im", "ir", "nicht-"} {
			if b, ok := strings.CutPrefix(whole, p); ok && len(b) > 3 && other.has["w:"+b] {
				base = b
			}
		}
		if base != "" {
			put[!w.under][stem(base)] = whole
			continue
		}
		put[w.under][stem(whole)] = whole
		for _, p := range strings.FieldsFunc(whole, apart) {
			put[w.under][stem(p)] = whole
		}
	}
	return put[true], put[false]
}

// apart reports what parts the words of a name like is_paid.
func apart(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }

// stem is a word without the endings that matter least.
func stem(w string) string {
	for _, end := range []string{"ing", "ed", "es", "en", "e", "s", "d"} {
		if t, ok := strings.CutSuffix(w, end); ok && utf8.RuneCountInString(t) > 3 {
			return t
		}
	}
	return w
}
