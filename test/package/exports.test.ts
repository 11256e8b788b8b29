import { execFileSync } from 'node:child_process'
import { expect, inject, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }

const entries = Object.keys(manifest.exports)
  .filter((entry) => entry !== './package.json')
  .map((entry) => entry.slice(1))

/** The exported names of each entry in one of the two module systems. */
function exportedNames(load: 'import' | 'require'): Record<string, string[]> {
  const script = `
    const names = {}
    for (const entry of ${JSON.stringify(entries)}) names[entry || '.'] = Object.keys(await ${load}('media-webhooks' + entry))
    console.log(JSON.stringify(names))`
  const withRequire = `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);${script}`
  const args = ['--no-warnings', '--input-type=module', '--eval', withRequire]
  return JSON.parse(execFileSync(process.execPath, args, { cwd: inject('userFolder'), encoding: 'utf8' }))
}

test('the exported names grow only in a reviewed change', () => {
  expect(exportedNames('import')).toMatchInlineSnapshot(`
    {
      ".": [
        "PermanentFailure",
        "RetryAfter",
        "WebhookError",
        "anyOf",
        "basicAuth",
        "createReceiver",
        "defineInbox",
        "defineSender",
        "defineStore",
        "eventTypes",
        "headerToken",
        "hmacSignature",
        "lifecycleKey",
        "lruStore",
        "memoryInbox",
        "publicKeySignature",
        "snsSignature",
        "standardWebhooks",
        "timestampedSignature",
        "unverified",
        "urlToken",
        "webhookErrorCodes",
      ],
      "/aws-lambda": [
        "lambdaHandler",
        "sqsHandler",
      ],
      "/client": [
        "ApiError",
        "apiErrorCodes",
        "createClient",
        "registerWebhook",
        "watchWebhook",
      ],
      "/cloudflare": [
        "StoreObject",
        "durableObjectInbox",
        "durableObjectStore",
        "inboxObject",
      ],
      "/dashboard": [
        "dashboard",
        "localOnly",
      ],
      "/emulator": [
        "createEmulator",
      ],
      "/express": [
        "expressHandler",
      ],
      "/fastify": [
        "fastifyReceiver",
      ],
      "/fetch": [
        "fetchHandler",
      ],
      "/health": [
        "health",
      ],
      "/hono": [
        "honoHandler",
      ],
      "/idempotency/redis": [
        "redisStore",
      ],
      "/inbox/bullmq": [
        "bullmqInbox",
        "openInboxQueue",
      ],
      "/inbox/pglite": [
        "pgliteInbox",
      ],
      "/inbox/postgres": [
        "migrate",
        "migrationSql",
        "openInboxDatabase",
        "poolOf",
        "postgresInbox",
      ],
      "/inbox/queue": [
        "queueInbox",
      ],
      "/inbox/sqlite": [
        "openInboxFile",
        "sqliteInbox",
      ],
      "/koa": [
        "koaHandler",
      ],
      "/node": [
        "closeOnSignals",
        "closeServer",
        "nodeHandler",
        "toDelivery",
      ],
      "/opentelemetry": [
        "openTelemetry",
      ],
      "/testing": [
        "deliver",
        "encodePayload",
        "makeDelivery",
        "samplePayload",
        "signWithBasicAuth",
        "signWithHeaderToken",
        "signWithHmac",
        "signWithStandardWebhooks",
        "signWithTimestampedSignature",
        "signWithUrlToken",
        "storeContract",
        "withTransactions",
      ],
    }
  `)
})

test('require gives the same names as import', () => {
  expect(exportedNames('require')).toEqual(exportedNames('import'))
})
