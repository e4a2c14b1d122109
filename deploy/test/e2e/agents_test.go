package e2e_test

// User-Agent headers of ordinary browsers and of programs.
const (
	phone = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 " +
		"Mobile Safari/537.36"
	desktop  = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
	unfurler = "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)" // draws previews
	crawler  = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
)
