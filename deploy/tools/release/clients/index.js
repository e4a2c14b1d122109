// A client of the API of linkstream. It waits and repeats requests as the API asks. index.d.ts has its types.
const operations = OPERATIONS;
const tries = 5;

/** An answer that is no success. fields says what is wrong with each invalid field. */
export class LinkstreamError extends Error {
  constructor(status, body) {
    super(body.message ?? `The answer has status ${status} and is not one of the API.`);
    Object.assign(this, { name: "LinkstreamError", status, code: body.error, fields: body.errors ?? {} });
  }
}

export class Linkstream {
  constructor(url, token, { fetch = globalThis.fetch, onWait } = {}) {
    Object.assign(this, { url: url.replace(/\/+$/, ""), token, fetch, onWait });
  }

  async call([method, path], { body, idempotencyKey, signal, ...parameters } = {}) {
    const headers = { Authorization: `Bearer ${this.token}` };
    if (method === "POST") headers["Idempotency-Key"] = idempotencyKey ?? crypto.randomUUID();
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, () => encodeURIComponent(value));
      else if (value !== undefined) query.set(name, value);
    }
    const url = `${this.url}${path}${query.size ? `?${query}` : ""}`;
    const request = { method, headers, signal, redirect: "manual", body: JSON.stringify(body) };
    for (let attempt = 1; ; attempt++) {
      const response = await this.fetch.call(globalThis, url, request);
      const seconds = Number(response.headers.get("Retry-After"));
      if ([409, 429, 503].includes(response.status) && seconds >= 1 && seconds <= 120 && attempt < tries) {
        await response.body?.cancel();
        this.onWait?.(seconds);
        await wait(seconds, signal);
        continue;
      }
      const json = response.headers.get("Content-Type")?.startsWith("application/json");
      if (!response.ok) throw new LinkstreamError(response.status, json ? await response.json() : {});
      return json ? response.json() : response;
    }
  }
}

function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

for (const [name, operation] of Object.entries(operations)) {
  Linkstream.prototype[name] = function (options) {
    return this.call(operation, options);
  };
}
