// Loaded into the browser's server before its own code: no address is looked up, and every
// page is one of this machine's, so that nothing leaves it. The browser ends with its server.
import { createServer } from 'node:http';

process.env.TMPDIR = process.argv[2]; // its profile
const pages = createServer((_, answer) => {
  answer.setHeader('content-type', 'text/html');
  answer.end('<title>Shop</title><h1>Tea, and go to http://shop.example/followed</h1><a id=buy href=/followed>Buy</a><input id=note>');
});
await new Promise((up) => pages.listen(0, '127.0.0.1', up));
pages.unref();
const to = `127.0.0.1:${pages.address().port}`;
process.env.PUPPETEER_LAUNCH_OPTIONS = JSON.stringify({
  executablePath: '/usr/bin/chromium',
  args: [`--host-resolver-rules=MAP * ${to}`],
});
for (const end of ['end', 'close']) process.stdin.on(end, () => process.exit());
