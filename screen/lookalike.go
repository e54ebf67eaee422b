package screen

// lookalikes maps letters to the Latin letter they are taken for, in the form
// they have after compatibility decomposition. It is a table of our own, of
// what a reader confuses at a glance, not the whole of UTS #39: a letter it
// misses lets a disguised word pass as a word nobody wrote a pattern for.
var lookalikes = map[rune]rune{}

func init() {
	for to, all := range lookalikesOf {
		for _, r := range all {
			lookalikes[r] = to
		}
	}
}

// lookalikesOf is the table, by Latin letter: Cyrillic, Greek, Armenian,
// Cherokee, and Latin letters that do not decompose.
var lookalikesOf = map[rune]string{
	'a': "\u0430\u0410\u03b1\u0391\u0251\u1d00\u0250\u13aa",
	'b': "\u0432\u0412\u044c\u042c\u03b2\u0392\u0185\u0253\u0180\ua7b5\u0299\u13f4",
	'c': "\u0441\u0421\u03f2\u03f9\u023c\u1d04\u0254\u13df",
	'd': "\u0501\u03b4\u0111\u0110\u0257\u0256\u1d05\u13a0",
	'e': "\u0435\u0415\u0451\u0454\u0404\u03b5\u0395\u0247\u1d07\u01dd\u13ac",
	'f': "\u0492\u0493\u0192\ua730",
	'g': "\u050d\u0581\u0261\u0260\u0262\u13c0",
	'h': "\u043d\u041d\u04bb\u04ba\u0397\u0570\u0127\u0126\u0266\u029c\u13bb",
	'i': "\u0456\u0406\u0457\u03b9\u0399\u0131\u0269\u026a\u0268\u13a5",
	'j': "\u0458\u0408\u03f3\u0237\u1d0a\u13ab",
	'k': "\u043a\u041a\u045c\u03ba\u039a\u0199\u1d0b\u13e6",
	'l': "\u04cf\u04c0\u0582\u0142\u0141\u026b\u029f\u13de\u01c0\u2223",
	'm': "\u043c\u041c\u039c\u0271\u1d0d\u13b7",
	'n': "\u043f\u03b7\u039d\u0578\u014b\u0272\u0274",
	'o': "\u043e\u041e\u04e7\u03bf\u039f\u03c3\u0585\u0555\u00f8\u00d8\u0275\u1d0f",
	'p': "\u0440\u0420\u03c1\u03a1\u01bf\u1d18\u13e2",
	'q': "\u051b\u0566\ua7af",
	'r': "\u0433\u0491\u0453\u0280\u0279\u13a1",
	's': "\u0455\u0405\u0282\ua731\u13da",
	't': "\u0442\u0422\u03c4\u03a4\u0167\u0166\u01ad\u1d1b\u0287\u13a2",
	'u': "\u03bc\u03c5\u057d\u054d\u1d1c",
	'v': "\u0475\u03bd\u028b\u1d20\u028c\u13d9",
	'w': "\u051d\u0461\u03c9\u1d21\u026f\u13b3",
	'x': "\u0445\u0425\u03c7\u03a7",
	'y': "\u0443\u0423\u04af\u04ae\u03a5\u03b3\u01b4\u028f\u028e",
	'z': "\u0396\u01b6\u1d22\u13c3",
}
