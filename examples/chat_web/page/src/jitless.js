// Before the SDK is loaded: its checks (zod) shall not try to make code, which the page's security policy forbids.
globalThis.__zod_globalConfig = { jitless: true };
