import { expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { start } from './program.ts'

test('emulate prints its addresses and the credentials that it generated', async () => {
  const program = start(['emulate', '--port', '0', '--secret-key', 'the-secret-key'])
  await program.line(/^ {2}access token {2}\S{20,}$/)
  program.interrupt()
  expect(await program.code).toBe(0)
  const [, url] = /^ {2}base URL {6}(http:\/\/127\.0\.0\.1:\d+)$/m.exec(program.output()) ?? []
  expect(program.output()).toContain(`\n  API           ${url}/api\n  page          ${url}/\n`)
  expect(program.output()).toMatch(/^ {2}public key {4}\S{20,}\n {2}secret key {4}\(as given\)$/m)
  expect(program.output()).not.toContain('the-secret-key')
})

test('emulate --json prints the two arguments of createClient', async () => {
  const program = start(['emulate', '--port', '0', '--json'])
  const { credentials, options } = JSON.parse(await program.line(/^\{.*\}$/))
  const { data } = await createClient(credentials, options).webhook.list()
  expect(data).toEqual({ webhooks: [], total: 0 })
  program.interrupt()
  expect(await program.code).toBe(0)
})
