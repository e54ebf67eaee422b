package screen

import "unicode"

// lookalikes maps letters to the Latin letter they are taken for, in the form
// they have after compatibility decomposition. It is a table of our own, of
// what a reader confuses at a glance, not the whole of UTS #39: a letter it
// misses lets a disguised word pass as a word nobody wrote a pattern for.
var lookalikes = map[rune]rune{}

func init() {
	for to, all := range lookalikesOf {
		for _, r := range all {
			lookalikes[r] = to
			if unicode.Is(unicode.Cherokee, r) {
				lookalikes[unicode.ToLower(r)] = to // small capitals
			}
		}
	}
	for _, r := range omegas {
		lookalikes[r] = 'w'
	}
}

// omegas are read as w, and as o where digits are read as letters.
const omegas = "\u03c9\u03a9\u2cb0\u2cb1"

// filler is how characters that show nothing and take room are read: they part
// words, and are no word of their own.
const filler = '\u2800'

// lookalikesOf is the table, by Latin letter: Cyrillic, Greek, Coptic, Armenian,
// Cherokee, Lisu, Canadian syllabics, a few of other scripts, and Latin letters
// that do not decompose.
var lookalikesOf = map[rune]string{
	'a': "\u0430\u0410\u03b1\u0391\u0251\u1d00\u0250\u13aa\ua4ee\u2c80\u2c81\u15e9\u039b\u03bb\u0394\u0414\u0434",
	'b': "\u0432\u0412\u044c\u042c\u03b2\u0392\u0185\u0253\u0180\ua7b5\u0299\u13f4\ua4d0\u2c82\u2c83\u1472\u15f7\u13cf\u0431\u0411",
	'c': "\u0441\u0421\u03f2\u03f9\u023c\u1d04\u0254\u13df\ua4da\u2ca4\u2ca5\u1455",
	'd': "\u0501\u03b4\u0111\u0110\u0257\u0256\u1d05\u13a0\ua4d3\u146f\u15ea",
	'e': "\u0435\u0415\u0451\u0454\u0404\u03b5\u0395\u0247\u1d07\u01dd\u13ac\ua4f0\u2c88\u2c89\u15f4\u03a3\u042d\u044d",
	'f': "\u0492\u0493\u0192\ua730\ua4dd\u15b4",
	'g': "\u050d\u0581\u0261\u0260\u0262\u13c0\ua4d6\u13f3",
	'h': "\u043d\u041d\u04bb\u04ba\u0397\u0570\u0127\u0126\u0266\u029c\u13bb\ua4e7\u2c8e\u2c8f\u157c",
	'i': "\u0456\u0406\u0457\u03b9\u0399\u0131\u0269\u026a\u0268\u13a5\ua4f2\u2c92\u2c93",
	'j': "\u0458\u0408\u03f3\u0237\u1d0a\u13ab\ua4d9\u148d",
	'k': "\u043a\u041a\u045c\u03ba\u039a\u0199\u1d0b\u13e6\ua4d7\u2c94\u2c95",
	'l': "\u04cf\u04c0\u0582\u0142\u0141\u026b\u029f\u13de\u01c0\u2223\ua4e1\u14aa\u0627\u05d5\u3163",
	'm': "\u043c\u041c\u039c\u0271\u1d0d\u13b7\ua4df\u2c98\u2c99\u15f0",
	'n': "\u043f\u03b7\u039d\u0578\u014b\u0272\u0274\ua4e0\u2c9a\u2c9b\u144e\u0438\u0418",
	'o': "\u043e\u041e\u04e7\u03bf\u039f\u03c3\u0585\u0555\u00f8\u00d8\u0275\u1d0f\ua4f3\u2c9e\u2c9f\u05e1\u101d\u0d20\u0b20\u0647\u3147\u03b8\u0398",
	'p': "\u0440\u0420\u03c1\u03a1\u01bf\u1d18\u13e2\ua4d1\u2ca2\u2ca3\u146d",
	'q': "\u051b\u0566\ua7af\u146b",
	'r': "\u0433\u0491\u0453\u0280\u0279\u13a1\ua4e3\u2c84\u2c85\u1587\u13d2\u042f\u044f",
	's': "\u0455\u0405\u0282\ua731\u13da\ua4e2\u1515\u13d5\u03c2",
	't': "\u0442\u0422\u03c4\u03a4\u0167\u0166\u01ad\u1d1b\u0287\u13a2\ua4d4\u2ca6\u2ca7",
	'u': "\u03bc\u03c5\u057d\u054d\u1d1c\ua4f4\u144c\u0426\u0446",
	'v': "\u0475\u03bd\u028b\u1d20\u028c\u13d9\ua4e6\u142f",
	'w': "\u051d\u0461\u1d21\u026f\u13b3\ua4ea\u15ef\u13d4\u0428\u0448",
	'x': "\u0445\u0425\u03c7\u03a7\ua4eb\u2cac\u2cad\u166d",
	'y': "\u0443\u0423\u04af\u04ae\u03a5\u03b3\u01b4\u028f\u028e\ua4ec\u2ca8\u2ca9\u13bd",
	'z': "\u0396\u01b6\u1d22\u13c3\ua4dc\u1614",
}
