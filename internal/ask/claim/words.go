package claim

import (
	"strings"
	"sync"
)

// The words a sentence is held to its quote by, folded, for English and German,
// and the negations of a few languages more. A word that is missing here lets a
// sentence pass unmarked; one too many marks a sentence that is true.

// class is what a word or a phrase does to what it stands with.
type class byte

const (
	noClass class = iota
	negates       // not: its absence beside its presence is marked
	fails         // fails to, null: as good as a negation on the other side, never asked for
	lessens       // lacks, 0: the same, but nothing it stands before is negated
	remains       // still: it is as it was, and as good as a negation of what would change it
	all           // of everything
	only          // of nothing else
	atLeast       // bounds the number behind it, as the next three do
	atMost
	moreThan
	lessThan
	neither // a phrase that has a word of these in it and means none of them
)

var phrases = classes(map[class]string{
	negates: `not, no, never, none, nobody, nothing, nowhere, neither, nor, without, cannot, false, dont, doesnt, didnt, isnt,
		arent, wasnt, werent, wont, cant, couldnt, shouldnt, wouldnt, hasnt, havent, hadnt, no one,
		nicht, nichts, nie, niemals, niemand, kein, keine, keinen, keinem, keiner, keines, ohne, weder, keineswegs, nirgends,
		pas, jamais, aucun, aucune, sans, rien, nunca, ningún, ninguna, ninguno, senza, nessun, nessuno, niet, geen, nooit,
		zonder, não, sem, не, нет, ни, без, никогда`,
	fails: "refuse to, refuses to, refused to, fail to, fails to, failed to, decline to, declines to, declined to, unable to, empty, null, leer",
	lessens: `zero, 0, hardly, barely, rarely, lack, lacks, lacking, missing, absent, denied, rejected,
		disabled, off, forbidden, prohibited, kaum, fehlt, fehlen, abgelehnt, verweigert`,
	remains: "still, yet, pending, until, noch",
	all:     "all, every, always, everyone, everybody, everything, entire, entirely, alle, allen, aller, alles, jede, jeder, jedes, jeden, immer, sämtliche",
	only:    "only, solely, exclusively, nur, ausschließlich",
	atLeast: `at least, no less than, not less than, no fewer than, not fewer than, minimum, a minimum of, minimum of, min,
		mindestens, wenigstens, nicht weniger als`,
	atMost: `at most, no more than, not more than, up to, maximum, a maximum of, maximum of, max, höchstens, maximal, bis zu,
		nicht mehr als`,
	moreThan: "more than, greater than, above, over, exceeds, exceed, exceeded, exceeding, mehr als",
	lessThan: "less than, fewer than, below, under, weniger als",
	neither:  "not only, not just, not least, no doubt, nothing but, nicht nur, nicht zuletzt, first of all, after all, above all, at all, no later than",
})

// classes reads the table above, when it is first asked for.
func classes(table map[class]string) func() map[string]class {
	return sync.OnceValue(func() map[string]class {
		out := map[string]class{}
		for c, list := range table {
			for w := range strings.SplitSeq(list, ",") {
				out[folded(strings.Join(strings.Fields(w), " "))] = c
			}
		}
		return out
	})
}

// phraseWords is the length of the longest phrase.
const phraseWords = 3

// numbers are number words and their values. Those of one are found in a
// quote and never asked of it: they are articles too.
var numbers = values(`zero null=0, one once a an ein einmal eine einen einem einer eins first erste ersten=1, two second twice zwei zweimal zweite zweiten=2, three third thrice drei dreimal dritte dritten=3,
	four fourth vier vierte vierten=4, five fifth fünf=5, six sixth sechs=6, seven seventh sieben=7, eight eighth acht=8, nine ninth neun=9,
	ten tenth zehn=10, eleven elf=11, twelve zwölf dozen=12, thirteen dreizehn=13, fourteen vierzehn=14, fifteen fünfzehn=15,
	sixteen sechzehn=16, seventeen siebzehn=17, eighteen achtzehn=18, nineteen neunzehn=19, twenty zwanzig=20, thirty dreißig=30,
	forty vierzig=40, fifty fünfzig=50, sixty sechzig=60, seventy siebzig=70, eighty achtzig=80, ninety neunzig=90,
	hundred hundert=100, thousand tausend=1000`)

// scales shift the number before them by so many digits.
var scales = values("hundred hundert=2, thousand thousands tausend=3, million millions mio millionen=6, billion billions mrd milliarden=9")

var months = values(`january jan januar=01, february feb februar=02, march mar märz=03, april apr=04, may mai=05, june jun juni=06,
	july jul juli=07, august aug=08, september sep sept=09, october oct oktober okt=10, november nov=11, december dec dezember dez=12`)

// units are what a number can be of, each by one name.
var units = values(`% percent prozent pct=%, ‰=‰, $ usd dollar dollars=usd, € eur euro euros=eur, £ gbp pound pounds pfund=gbp, ¥ jpy yen=jpy,
	chf franken francs=chf, cny=cny, inr ₹=inr, cent cents=cent,
	mm millimetres millimeters millimeter=mm, cm centimetres centimeters zentimeter=cm, m metre metres meter meters=m,
	km kilometre kilometres kilometer kilometers=km, mile miles meilen=mile, ft feet foot=ft, inch inches zoll=inch,
	mg milligrams milligramm=mg, g gram grams gramm=g, kg kilogram kilograms kilo kilos kilogramm=kg, t ton tons tonne tonnes tonnen=t, lb lbs=lb,
	ml millilitres milliliters milliliter=ml, l litre litres liter liters=l,
	ms millisecond milliseconds millisekunden=ms, s sec secs second seconds sekunde sekunden=s, min mins minute minutes minuten=min,
	h hr hrs hour hours stunde stunden=h, day days tag tage tagen=day, week weeks woche wochen=week, month months monat monate monaten=month,
	year years jahr jahre jahren=year, kb kilobyte kilobytes=kb, mb megabyte megabytes=mb, gb gigabyte gigabytes=gb, tb terabyte terabytes=tb, percentage=pp, kib=kib, mib=mib, gib=gib, byte bytes=byte, bit bits=bit,
	w watt watts=w, kw=kw, kwh=kwh, v volt volts=v, hz=hz, mhz=mhz, ghz=ghz, c celsius=c, f fahrenheit=f, px pixel pixels=px`)

// values reads words and what they stand for, when they are first asked for.
func values(table string) func() map[string]string {
	return sync.OnceValue(func() map[string]string {
		out := map[string]string{}
		for entry := range strings.SplitSeq(table, ",") {
			ws, v, _ := strings.Cut(entry, "=")
			for w := range strings.FieldsSeq(ws) {
				out[folded(w)] = v
			}
		}
		return out
	})
}

// common are words that say little: they are not what a negation is about, nor
// what a number or a name is told by. A name is not asked for among them.
var common = set(`a an the and or but of to in on at by for from with as is are was were be been being has have had do does did
	will would can could should may it its he she they we you i this that these those there then here who which what when where
	why how if so also than yet already still now his her their our your my der die das den dem des ein eine einen einem einer
	und oder aber von zu im in an am auf bei für mit aus als ist sind war waren sein wird wurde werden hat haben es er sie wir
	ihr dies diese dieser dieses wenn wann wer wo wie auch noch schon bereits im`)

// helpers stand between a name and what is said of it.
var helpers = set("has have had hat haben also already auch bereits")

// isGerman reports whether a text is German: every noun has a capital letter
// there, and none is told for a name by it.
func isGerman(text string) bool {
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		if german()[w] {
			return true
		}
	}
	return false
}

var german = set("der das und ist nicht eine einen wurde wird dem mit für auf sind kein keine sich durch vom zum zur bis")

// set reads words, when they are first asked for.
func set(list string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		out := map[string]bool{}
		for w := range strings.FieldsSeq(list) {
			out[folded(w)] = true
		}
		return out
	})
}
