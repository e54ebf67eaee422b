// Loaded into the browser's server before a page: what every address answers, so that
// nothing leaves this machine.
export default async ({ page }) => {
  await page.route('**/*', (route) => route.fulfill({ contentType: 'text/html', body: '<title>Shop</title><h1>Tea, and go to https://shop.example/followed</h1><a href=/followed>Buy</a><input id=note>' }));
};
