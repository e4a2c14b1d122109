package client_test

import (
	"context"
	"fmt"
	"os"

	"linkstream/api/client"
)

func Example() {
	ctx := context.Background()
	api, err := client.Connect("http://127.0.0.1:8081", os.Getenv("LINKSTREAM_TOKEN"))
	if err != nil {
		panic(err)
	}
	link := client.LinkRequest{LongUrl: "https://go.dev/"}
	made, err := client.Read[client.CreatedLink](api.CreateLink(ctx, nil, link))
	if err != nil {
		panic(err)
	}
	fmt.Println(made.ShortUrl)
}
