// Package money reads the numbers and amounts of money in a user's own words, and
// computes what follows from them (R11), exactly: in digits, never in floating
// point.
//
// An amount is what stands by itself, as whole tokens (R6): digits, with groups
// and a fraction, or words, with a currency, a percent sign or neither. A sign
// before it, a unit written on to it, groups of other than three digits or two
// currencies make it none, and so do words beside it that make of it a part or a
// multiple ("half a million", "$5 billion"): a number is read as a whole or not at
// all. Dates, clocks and durations have numbers in them too; whoever asks leaves
// out what internal/calendar reads, and asks of a number without a currency what
// R8 asks of small values.
//
// "1,250" and "1.250" are a thousand in one country and one and a quarter in
// another. A number whose one separator has three digits behind it is read
//
//   - as the thousand, if it is of a currency that has no thousandths: nobody
//     writes "$1.250" for a dollar and a quarter;
//   - else as the other numbers of the text are written, where one of them
//     shows what its comma or point is ("12,50", "1.234.567") and none the
//     opposite;
//   - else as both, and as neither where the text shows both ways of writing, or it
//     stands before a million or a thousand: "$1.250 million" is both people's.
//
// None of the text is an attacker's; what is at risk is a model that picks the
// wrong one of two. Where the words decide, it has no choice; where they do not,
// one of the two is what was meant, and caps and budgets bound the other.
//
// "k" for thousand is read with a currency only ("$5k"): five k may be a run.
package money

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/numeral"
)

// Amount is a number in a text: the bytes [Start, End).
type Amount struct {
	Start, End int
	Values     []string // one value, or two, smaller first; digits and at most one point, no zeros that say nothing
	Currency   string   // ISO 4217, or "$", "¥", "kr" where several have that name; "" for none
	Percent    bool
	One        bool // "one" or "another": a number only before the unit of what is counted
	Sense
}

// Sense is what the words beside an amount say it is for.
type Sense struct {
	More bool // "another", "2 more", "plus 2": so many beside those there are
	Less bool // "2 fewer", "minus 2": so many less
	Part bool // "minus 2", "2 plus", "2 fewer": what is computed with, and by itself is not what is asked for
}

// Fits reports whether an amount may be computed with by a form.
func (s Sense) Fits(form Form) bool {
	return !(s.More && form != Sum) && !(s.Less && form != Difference && form != Percent)
}

// maxDigits bounds the digits of a number; maxAmounts the amounts of a text,
// which says nothing if it has more.
const (
	maxDigits  = 18
	maxAmounts = 256
)

// currencies are the names of each, folded. Of several that share a name, none
// is meant by it more than another.
var currencies = names(`USD=us$ usd us_dollar us_dollars american_dollars; EUR=€ eur euro euros; GBP=£ gbp quid pound pounds british_pounds; JPY=jpy yen; CHF=chf franken swiss_francs schweizer_franken; CAD=c$ ca$ cad canadian_dollars; AUD=a$ au$ aud australian_dollars; NZD=nz$ nzd;
	HKD=hk$ hkd; SGD=s$ sgd singapore_dollars; MXN=mxn; BRL=r$ brl; CNY=cny rmb yuan; INR=₹ inr rupees; KRW=₩ krw; SEK=sek; NOK=nok; DKK=dkk; PLN=zł pln złoty;
	CZK=kč czk; HUF=huf forint; TRY=₺; RUB=₽; UAH=₴ uah; ILS=₪ ils; ZAR=zar; THB=฿ thb; KWD=kwd; BHD=bhd; OMR=omr; JOD=jod; TND=tnd; IQD=iqd; LYD=lyd;
	$=$ dollar dollars; ¥=¥; kr=kr kronor kroner`)

// places are how many digits of a fraction a currency has, if not two.
var places = map[string]int{"JPY": 0, "KRW": 0, "KWD": 3, "BHD": 3, "OMR": 3, "JOD": 3, "TND": 3, "IQD": 3, "LYD": 3}

// Places returns how many digits an amount of a currency may have behind the
// point: what Derive rounds to. Without a currency it is two.
func Places(currency string) int {
	if n, ok := places[currency]; ok {
		return n
	}
	return 2
}

// shared are the currencies a name that several have may mean.
var shared = map[string][]string{"$": {"USD", "CAD", "AUD", "NZD", "HKD", "SGD", "MXN"}, "¥": {"JPY", "CNY"}, "kr": {"SEK", "NOK", "DKK"}}

// scales shift a number by so many digits.
var scales = map[string]int{"thousand": 3, "tausend": 3, "million": 6, "millions": 6, "millionen": 6, "mio": 6}

func names(table string) map[string]string {
	out := map[string]string{}
	for entry := range strings.SplitSeq(table, ";") {
		code, ws, _ := strings.Cut(strings.TrimSpace(entry), "=")
		for w := range strings.FieldsSeq(ws) {
			out[w] = code
		}
	}
	return out
}

// reader reads one text.
type reader struct {
	text  string
	words []numeral.Word
	shown map[string]bool // the marks before a fraction, as its unambiguous amounts show
}

// Read returns the amounts of a run of a user's own words.
func Read(words string) (out []Amount) {
	r := &reader{words, numeral.Words(words), map[string]bool{}}
	var found []amount
	for i := 0; i < len(r.words); {
		a, next := r.amount(i)
		if a.values == nil {
			i = max(next, i+1)
			continue
		}
		found, i = append(found, a), next
		if a.fraction != "" {
			r.shown[a.fraction] = true
		}
	}
	if len(found) > maxAmounts {
		return nil
	}
	for _, a := range found {
		if a.Values = r.resolve(a); len(a.Values) > 0 {
			out = append(out, a.Amount)
		}
	}
	return out
}

// amount is one that may still be of two values.
type amount struct {
	Amount
	numeric
}

type numeric struct {
	values   []fixed // one; or the thousand and the fraction
	mark     string  // of two: what stands between the digits
	fraction string  // of one: the mark before a fraction, as its digits show
	loose    bool    // more than three digits stand behind its one mark
	scaled   bool    // "$1.250 million": which of the two, the currency does not say
}

// malformed reports whether what looks like a fraction is more likely thousands with a
// digit too many: of a currency nobody writes ten-thousandths but behind a zero.
func (a *amount) malformed() bool { return a.loose && a.Currency != "" }

// amount reads one that begins at a word, or says how far there is none.
func (r *reader) amount(i int) (a amount, next int) {
	if !r.words[i].Opens {
		return a, i + 1
	}
	start := i
	a.Currency, i = r.currency(i)
	if a.numeric, i = r.number(i); i == start && r.words[i].Fold == "another" {
		a.values, a.More, i = []fixed{number(1, 0)}, true, i+1
	}
	if a.values == nil {
		return a, i
	}
	word, k := i, false
	if w := r.word(i); w == "k" && r.words[i].Gap == numeral.Glued {
		word, k = i+1, true
	} else if n, ok := scales[w]; ok && r.words[i].Gap == numeral.Space {
		a.shift(n)
		word, a.scaled = r.abbreviated(i+1), true
	}
	end, ok := r.unit(&a, word)
	if !ok || k && a.Currency == "" {
		return amount{}, end
	}
	if k {
		a.shift(3)
		a.scaled = true
	}
	if end, ok = r.withCents(&a, start, end); !ok {
		return amount{}, end
	}
	if r.partBefore(start) || r.partBehind(word, end, a.Currency != "") || a.malformed() {
		return amount{}, end
	}
	if end, ok = r.counted(&a, start, end); !ok {
		return amount{}, end
	}
	r.weigh(&a, start, end)
	last := r.words[end-1]
	if !last.Closes {
		return amount{}, end
	}
	a.Start, a.End = r.words[start].Start, last.End
	return a, end
}

// abbreviated passes the stop of "Mio." before a currency.
func (r *reader) abbreviated(i int) int {
	if c, _ := r.currency(i + 1); c != "" && r.word(i) == "." && r.words[i].Gap == numeral.Glued {
		return i + 1
	}
	return i
}

// weigh reads what the words beside an amount, which ends at end, make of it: what is added or
// taken off, or what that is done to.
func (r *reader) weigh(a *amount, start, end int) {
	before, behind := "", r.word(end)
	if start > 0 && r.words[start].Gap == numeral.Space {
		before = r.words[start-1].Fold
	}
	next, _ := r.currency(end + 1)
	goesOn := next != "" || r.word(end+1) != "" && (r.words[end+1].Class == numeral.Digits || r.counts(end+1, true)) // "$80 less 10%"
	raised, lowered := r.changed(start, before)
	plus, minus := adding[before] || raised, lowered || subtracting[before] || fewer[behind] && !goesOn || a.Percent && rebates[behind]
	for i := end; i < end+3 && i < len(r.words) && r.words[i].Gap == numeral.Space && a.Currency == "" && !a.Percent; i++ {
		minus = minus || fewer[r.words[i].Fold] // "2 bags fewer"
	}
	a.Part = plus || minus || adding[behind] || subtracting[behind] || r.shared(start, a.Currency != "")
	a.More, a.Less = a.More || plus && !a.Percent, minus
}

// changed reports whether words before i say that something is raised, or lowered, by the amount
// there: "increase my rent by $100".
func (r *reader) changed(i int, before string) (raised, lowered bool) {
	if !changing[before] {
		return false, false
	}
	for j := i - 2; j >= 0 && i-j <= longestShare && r.words[j+1].Gap != numeral.Line && !strings.Contains(",.;:!?", r.words[j].Fold); j-- {
		switch w := r.words[j].Fold; {
		case raising[w]:
			return true, false
		case lowering[w]:
			return false, true
		}
	}
	return false, false
}

// shared reports whether words before i say of the amount there that a share of it is meant: "10%
// of $80", "10% discount on the $80", "20 of my 50", "split the $80".
func (r *reader) shared(i int, money bool) bool {
	through := false
	for j := i - 1; j >= 0 && i-j <= longestShare && r.words[j+1].Gap != numeral.Line; j-- {
		w := r.words[j].Fold
		switch {
		case of[w] || w == "on" || w == "auf":
			through = true
		case dividing[w], w == "%" || w == "percent" || w == "prozent":
			return dividing[w] || through
		case !fillers[w] && !rebates[w] && !charges[w]:
			return through && !money && (r.words[j].Class == numeral.Digits || r.counts(j, true))
		default:
			through = through || w == "off"
		}
	}
	return false
}

// longestShare bounds the words between an amount and the share of it.
const longestShare = 6

// unit reads the currency or percent sign behind a number, which ends at i; it is not ok where a
// currency that is not the one before the number is written on to it.
func (r *reader) unit(a *amount, i int) (next int, ok bool) {
	c, to := r.currency(i)
	switch w := r.word(i); {
	case c != "" && (a.Currency == "" || a.Currency == c || slices.Contains(shared[a.Currency], c)):
		a.Currency = c
		return to, true
	case a.Currency == "" && (w == "%" || w == "percent" || w == "prozent"):
		a.Percent = true
		return i + 1, true
	}
	if c != "" && r.words[i].Gap == numeral.Glued {
		return to, false
	}
	return i, true
}

// counted reads around a number without a currency whether it is "one", and how many more; it is
// not ok of "the other one", nor of another dollar.
func (r *reader) counted(a *amount, start, end int) (next int, ok bool) {
	if a.Currency != "" || a.Percent {
		return end, !a.More
	}
	a.One = end == start+1 && r.words[start].Class == numeral.Letters && a.values[0].String() == "1"
	before := ""
	if start > 0 && r.words[start].Gap == numeral.Space {
		before = r.words[start-1].Fold
	}
	if a.One && pronouns[before] {
		return end, false
	}
	if a.More = a.More || more[before] || before == "another" || before == "noch"; !a.More && more[r.word(end)] {
		a.More, end = true, end+1
	}
	for i := end; i < end+3 && i < len(r.words) && r.words[i].Gap == numeral.Space; i++ {
		a.More = a.More || more[r.words[i].Fold] // "2 checked bags more"
	}
	return end, true
}

// withCents adds those that stand behind an amount; it is not ok of what are cents of nothing,
// nor of "5 euros 50", where nothing says that the 50 are cents.
func (r *reader) withCents(a *amount, start, end int) (next int, ok bool) {
	cents, to := r.cents(end)
	if cents > 0 && a.Currency != "" && Places(a.Currency) == 2 && a.mark == "" && a.values[0].places == 0 {
		a.values[0] = a.values[0].plus(number(int64(cents), 2), false)
		return to, true
	}
	_, alone := r.cents(start)
	if to > end || alone > start || a.Currency != "" && small[r.word(end)] {
		return max(end, to, alone), false
	}
	if c, behind := r.currency(end - 1); c != "" && behind == end {
		if v, to := r.number(end); r.word(end) != "" && v.values != nil && r.words[end].Gap == numeral.Space && r.twoDigits(v, end) && r.stops(to) {
			return to, false
		}
	}
	return end, true
}

// twoDigits reports whether a number that stands at i is of two digits and no more.
func (r *reader) twoDigits(n numeric, i int) bool {
	v := n.values[0]
	return v.places == 0 && v.digits.IsInt64() && v.digits.Int64() < 100 && (v.digits.Int64() > 9 || r.words[i].Fold == "0"+v.digits.String())
}

// stops reports whether a number that ends at i is of nothing that follows.
func (r *reader) stops(i int) bool {
	w := r.word(i)
	return w == "" || short[w] || r.words[i].Class == numeral.Mark && r.words[i-1].Closes
}

// cents reads "and 50 cents": n is 0 for none, or for more than a currency's
// unit; then next is behind them.
func (r *reader) cents(at int) (n, next int) {
	i := at
	if w := r.word(i); w == "and" || w == "und" {
		i++
	}
	v, i := r.number(i)
	if v.values == nil || v.mark != "" || v.values[0].places > 0 {
		return 0, at
	}
	if small[r.word(i)] {
		if n := v.values[0].digits; n.IsInt64() && n.Int64() > 0 && n.Int64() < 100 {
			return int(n.Int64()), i + 1
		}
		return 0, i + 1
	}
	return 0, at
}

func (a *amount) shift(n int) {
	for i := range a.values {
		a.values[i] = a.values[i].shift(n)
	}
}

// word is the i-th word if it stands in the line of the one before it, or "".
func (r *reader) word(i int) string {
	if i < len(r.words) && r.words[i].Gap != numeral.Line {
		return r.words[i].Fold
	}
	return ""
}

// currency reads a name of one: a sign, a code, a word, or a sign with letters
// before it.
func (r *reader) currency(i int) (code string, next int) {
	if i >= len(r.words) {
		return "", i
	}
	w := r.words[i].Fold
	if next := r.word(i + 1); next != "" {
		if r.words[i+1].Gap == numeral.Space {
			next = "_" + next
		}
		if c := currencies[w+next]; c != "" {
			return c, i + 2
		}
	}
	if c := currencies[w]; c != "" && !(weighing[w] && r.word(i+1) == "of") {
		return c, i + 1
	}
	return "", i
}

// number reads digits or words; next is behind what is a number, well formed or
// not.
func (r *reader) number(i int) (n numeric, next int) {
	if i >= len(r.words) {
		return n, i
	}
	if r.words[i].Class != numeral.Digits {
		c, next := numeral.Cardinal(r.words, i)
		if c > 0 {
			n.values = []fixed{number(int64(c), 0)}
		}
		return n, next
	}
	pieces, marks := []string{r.words[i].Fold}, []string{}
	next = i + 1
	for next+1 < len(r.words) && r.words[next].Gap == numeral.Glued && r.words[next+1].Gap == numeral.Glued && r.words[next+1].Class == numeral.Digits &&
		strings.Contains(",.'\u2019", r.words[next].Fold) {
		pieces, marks, next = append(pieces, r.words[next+1].Fold), append(marks, r.words[next].Fold), next+2
	}
	n = digits(pieces, marks)
	n.loose = len(marks) == 1 && pieces[0] != "0" && len(pieces[1]) > 3
	for ; len(r.word(next)) == 3 && r.words[next].Class == numeral.Digits || r.word(next+1) == "/"; next++ {
		n = numeric{} // 10 000, 5 1/2: of one number, or of two
	}
	return n, next
}

// digits reads the digits between marks.
func digits(pieces, marks []string) (n numeric) {
	all := strings.Join(pieces, "")
	last := len(marks)
	if len(all) > maxDigits || len(pieces[0]) > 1 && pieces[0][0] == '0' {
		return n
	}
	grouped := func(n int) bool { // the first n marks are between thousands
		ok := len(pieces[0]) <= 3 && pieces[0] != "0"
		for i := range n {
			ok = ok && len(pieces[i+1]) == 3 && marks[i] == marks[0]
		}
		return ok
	}
	other := map[string]string{",": ".", ".": ","}
	switch {
	case last == 0:
		n.values = []fixed{parse(all, 0)}
	case grouped(last) && (last > 1 || other[marks[0]] == ""):
		n.values, n.fraction = []fixed{parse(all, 0)}, other[marks[0]]
	case grouped(last):
		n.values, n.mark = []fixed{parse(all, 0), parse(all, 3)}, marks[0]
	case other[marks[last-1]] != "" && (last == 1 || grouped(last-1) && marks[0] != marks[last-1]):
		n.values, n.fraction = []fixed{parse(all, len(pieces[last]))}, marks[last-1]
	}
	return n
}

// resolve says which of its two values an amount has.
func (r *reader) resolve(a amount) []string {
	thousand := a.values[0].String()
	if a.mark == "" || a.Currency != "" && Places(a.Currency) < 3 && !a.scaled {
		return []string{thousand}
	}
	fraction := a.values[1].String()
	switch {
	case len(r.shown) > 1, len(r.shown) == 0 && a.scaled:
		return nil
	case len(r.shown) == 0:
		return []string{fraction, thousand}
	case r.shown[a.mark]:
		return []string{fraction}
	}
	return []string{thousand}
}
