// Package claim judges what a model claims in the single-step host: a plan, the
// typing of a result, a summary. It is pure: bytes in, verdicts out; no clock,
// no I/O, no randomness, and no error results: a verdict is not an error.
//
// It trusts what its caller observed itself and hands over as values: the tools
// that were listed live, the operator's allowlist, the bytes that were
// recorded. It trusts nothing a model wrote.
//
// # Plans
//
// ParsePlan accepts one JSON object and nothing else (INV-1): JSON white space
// around it may stand, a byte order mark, a fence or a word may not. Keys are
// exact, each stands once, and there are exactly those of the plan's type:
//
//	{"type":"call_tool","server":"…","tool":"…","args":{…}}
//	{"type":"final_answer","needs_more_info":true,"answer":"…"}
//
// Allowlist.Check then holds a call_tool to the live catalogue, the operator's
// allowlist and the tool's own schema (INV-2, INV-3).
//
// # Grounded summaries
//
// A Source is the canonical text of bytes that were recorded. Ground accepts a
// summary only if the evidence of every item is a verbatim substring of that
// text (INV-5), and says for each which bytes of the record it quotes. A quote
//
//   - is at least 8 bytes long, or else the whole of one string or number of at
//     least two characters (in a plain text: a whole line);
//   - holds a letter or a digit, and reaches into a value: names alone show
//     nothing. At least 8 bytes of it, or most of it, lie in values; where most
//     is asked, a name counts that stands there with the whole of its value;
//   - does not begin or end inside a word, a number or an escape: 12 is no
//     quote of 1250, of 12.50 or of -12, nor pay.acme.com of pay.acme.com.au
//     (text.Apart). Hyphens, apostrophes, points and the @ inside a word, signs
//     before a number and the marks between its digits hold it together;
//     characters that nobody sees do not hold it apart. A plain space does.
//
// The first place that satisfies this is the one quoted.
//
// That evidence is verbatim does not make the text beside it follow from it:
// what an item says about its quote is the model's, and stays so labelled. Each
// item comes with the text around its quote (Item.Within), and with marks by
// MarkRules: what it says that the quote does not (Item.NotInQuote), and what of
// the quoted sentence it goes against by leaving it out (Item.LeftOut). They are
// for a person's eyes, and nothing is refused for them.
package claim
