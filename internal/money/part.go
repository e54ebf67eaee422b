package money

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/numeral"
)

// What makes of a number a part of one, or a multiple. No reading of these words is
// tried: of "half a million" the million is not what was said, and that is enough.

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

var (
	// fractions make a part or a multiple of the number behind them.
	fractions = set(`half halves quarter quarters ½ ¼ ¾ ⅓ ⅔ ⅕ ⅛ double twice triple thrice treble quadruple
		halb halbe halben halber halbes hälfte drittel viertel fünftel sechstel siebtel achtel neuntel zehntel hundertstel tausendstel
		einhalb anderthalb eineinhalb zweieinhalb dreieinhalb dreiviertel doppelt doppelte doppelten dreifach dreifache dreifachen`)
	// ordinals do where "of" stands between: the third payment is a whole one.
	ordinals = set(`third thirds fourth fourths fifth fifths sixth sixths seventh sevenths eighth eighths ninth ninths tenth tenths
		twentieth hundredth hundredths thousandth thousandths`)
	// fillers may stand between a fraction and its number.
	fillers = set(`of the a an one my his her its our your their this that those these all von vom der die das des dem den ein eine einer eines einem einen
		meiner meine meinen deiner deine deinen seiner ihrer unserer dieser diese diesen`)
	// more is said between a number and what there will be so many more of.
	more = set("more additional extra further mehr weitere weiteren weiterer zusätzliche zusätzlichen")
	// pronouns make a "one" behind them no number.
	pronouns = set("the this that no any each every which other")
	// denying take what is behind them out, and so do "instead of" and "rather than".
	denying = set("not never except excluding excl besides nicht nie niemals kein keine keinen außer ausser ausgenommen statt anstatt")
	// adding and subtracting stand between what is computed with; fewer and rebates behind what is taken off.
	adding      = set("plus + zuzüglich zzgl")
	subtracting = set("minus negative less weniger abzüglich abzgl")
	fewer       = set("less fewer weniger")
	rebates     = set("off discount rabatt nachlass")
	// changing stands before what something is raised or lowered by.
	changing = set("by um")
	raising  = set("raise raises raised raising increase increases increased increasing up bump erhöhe erhöhen erhöht hebe")
	lowering = set("lower lowers lowered lowering decrease decreases decreased reduce reduces reduced reducing cut down senke senken gesenkt verringere kürze reduziere")
	// charges are said with a share, and dividing is done to an amount.
	charges  = set("tip tips fee fees commission vat tax interest trinkgeld gebühr mwst steuer zinsen provision")
	dividing = set("split divide halve teile halbiere verdopple triple")
	// weighing are currencies that are weights too: "5 pounds of flour".
	weighing = set("pound pounds")
	// small are the names of a hundredth.
	small = set("cent cents ct pence p")
	of    = set("of von vom der des einer eines")
	// points are said between the digits of a number.
	points = set("point komma comma")
	// magnitudes multiply the number before them, whether or not the grammar knows by how much.
	magnitudes = set(`k hundred hundreds hundert thousand thousands tausend tausende million millions millionen mil mill mille mio mln mn
		billion billions billionen bil bill bln bn milliard milliards milliarde milliarden mrd trillion trillions trillionen trn tn quadrillion
		grand tsd lakh lakhs lac crore crores dozen dozens dutzend`)
	// hedges may stand between a number and its magnitude.
	hedges = set("or so some odd about roughly ish oder so etwa rund ungefähr circa ca")
	// short are the words of at most three letters that may follow an amount: no magnitude and no code is one.
	short = set(`a i x to for on at in by via per and or if as of is now not but so an zu für bis am im ab je mal und oder von vor`)
)

// counts reports whether a number word of more than one stands at i, or any at all: "one"
// and the articles are no numbers of what follows.
func (r *reader) counts(i int, one bool) bool {
	if i < 0 || i >= len(r.words) || r.words[i].Class != numeral.Letters {
		return false
	}
	n, next := numeral.Cardinal(r.words[:i+1], i)
	return next > i && (one || n != 1) || magnitudes[r.words[i].Fold] || r.words[i].Fold == "zero" || r.words[i].Fold == "null"
}

func joins(w string) bool { return w == "and" || w == "und" }

// partBefore reports whether what stands before i, in its line, makes a part of what
// begins there, or is a part of it.
func (r *reader) partBefore(i int) bool {
	line := i // the first word of the line
	for line > 0 && r.words[line].Gap != numeral.Line && i-line < longestPart {
		line--
	}
	fold := func(j int) string {
		if j < line {
			return ""
		}
		return r.words[j].Fold
	}
	if i == line {
		return false
	}
	before := fold(i - 1)
	switch {
	case denying[before], before == "of" && fold(i-2) == "instead", before == "than" && fold(i-2) == "rather":
		return true
	case before == "," && i-2 >= line && (magnitudes[fold(i-2)] || r.words[i].Class == numeral.Letters && r.counts(i-2, false)):
		return true // "one million, five hundred thousand"
	case points[before], fractions[before], r.counts(i-1, false), joins(before) && i-2 >= line && r.counts(i-2, before == "und"):
		return true
	}
	through := false
	j := i - 1
	for ; fillers[fold(j)]; j-- {
		through = through || of[fold(j)]
	}
	w := fold(j)
	if fractions[w] || through && ordinals[w] {
		return true
	}
	// 1/2 of, 0.5 of
	return through && j > line+1 && r.words[j].Class == numeral.Digits && r.words[j].Gap == numeral.Glued && slices.Contains([]string{"/", ".", ","}, fold(j-1))
}

// longestPart bounds the words that are looked at before an amount.
const longestPart = 16

// partBehind reports whether what stands behind a number, which ends at i, or behind its
// currency, which ends at end, is of it too.
func (r *reader) partBehind(i, end int, money bool) bool {
	w := r.word(end)
	for k := end; hedges[r.word(k)]; k++ {
		if magnitudes[r.word(k+1)] {
			return true // "$5 or so million"
		}
	}
	if w == "," && end == i && magnitudes[r.words[i-1].Fold] && end+1 < len(r.words) && r.words[end].Gap != numeral.Line && (r.words[end+1].Class == numeral.Digits || r.counts(end+1, true)) {
		return true // "one million, five hundred thousand"
	}
	next := end
	if joins(w) {
		if next++; fillers[r.word(next)] {
			next++
		}
	}
	switch {
	case magnitudes[w], end == i && points[w], fractions[r.word(next)] && (next > end || end == i), next > end && ordinals[r.word(next)]:
		return true
	case end > i || r.words[i-1].Class != numeral.Letters:
	case r.counts(end, false), joins(w) && r.word(end+1) != "" && r.counts(end+1, true):
		return true
	}
	return r.unknown(end, money)
}

// unknown reports whether letters behind a number are a magnitude or a code that nobody
// here knows: one alone, or up to three in capitals where not all is in capitals. What
// stands behind a number without a currency may be the unit of what is counted.
func (r *reader) unknown(i int, money bool) bool {
	w := r.word(i)
	if w == "" || r.words[i].Class != numeral.Letters || short[w] {
		return false
	}
	raw := r.text[r.words[i].Start:r.words[i].End]
	if !money {
		return raw == "M" || raw == "B" || raw == "T"
	}
	capitals := strings.ToUpper(raw) == raw && strings.ToUpper(r.text) != r.text
	return utf8.RuneCountInString(raw) == 1 || len(raw) <= 3 && capitals
}
