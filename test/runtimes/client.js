import { createReceiver, unverified } from 'media-webhooks'
import { createClient, registerWebhook } from 'media-webhooks/client'

const receiver = createReceiver({ verify: unverified(), ack: 'handled' }).on('encoding.finished', () => {})

/** Uses the client as its user would, on a service whose address and token are in the query. */
export async function useClient({ searchParams }) {
  const { baseUrl, accessToken, slowUrl, movedUrl } = Object.fromEntries(searchParams)
  const client = createClient({ accessToken }, { baseUrl })
  const { data } = await client.apiKey.create({ apiKeyName: 'on a runtime', ttl: 60, type: 'full_access' })
  const pair = { publicKey: data.apiKey.publicKey, secretKey: data.apiKey.secret }
  const registration = { url: 'https://example.com/hooks', name: 'on a runtime' }
  const register = async () => (await registerWebhook(createClient(pair, { baseUrl }), receiver, registration)).action
  const actions = [await register(), await register()]

  const listed = []
  for await (const { id, encodingFinished } of client.webhook.listAll()) {
    await client.webhook.update(id, { encodingFailed: true })
    listed.push({ encodingFinished, ...(await client.webhook.delete(id)) })
  }
  const ended = new AbortController()
  setTimeout(() => ended.abort(), 50)
  const codes = [
    await codeOf(client.webhook.get('00000000-0000-0000-0000-000000000000')),
    await codeOf(client.webhook.create({ url: 'no URL' })),
    await codeOf(createClient({ accessToken: 'a-guess' }, { baseUrl }).webhook.list()),
    await codeOf(createClient(pair, { baseUrl: slowUrl, timeoutMs: 50, retries: 1 }).webhook.list()),
    await codeOf(createClient(pair, { baseUrl: slowUrl }).webhook.list({}, { signal: ended.signal })),
    await codeOf(createClient(pair, { baseUrl: movedUrl }).webhook.list()),
  ]
  return { actions, listed, codes }
}

const codeOf = (call) =>
  call.then(
    () => 'success',
    ({ name, code }) => `${name} ${code}`,
  )
