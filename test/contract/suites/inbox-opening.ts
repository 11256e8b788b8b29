import { eventOf, openInbox } from '../../support/inbox.ts'
import { type Check, codeOf } from './inbox-check.ts'

export function checkOpening(check: Check): void {
  check('cannot be opened by a second receiver', async ({ definition, expect }) => {
    const openAgain = () => openInbox(definition).inbox.close({ timeoutMs: 0 })
    expect(await codeOf(openAgain)).toBe('invalid_option')
  })

  check('cannot be opened again once it is closed', async ({ inbox, definition, expect }) => {
    await inbox.close()
    const openAgain = () => openInbox(definition).inbox.close({ timeoutMs: 0 })
    expect(await codeOf(openAgain)).toBe('invalid_option')
  })

  check('has handleNow only if its definition says so', async ({ inbox, definition, expect }) => {
    expect(inbox.handleNow === undefined || definition.handlesNow === true).toBe(true)
  })

  check(
    "has handleNow with ack: 'handled'",
    async ({ inbox, expect }) => {
      expect(inbox.handleNow !== undefined).toBe(true)
    },
    'handlesNow',
  )

  check(
    'answers what its handlers made of an event, and then calls it a duplicate',
    async ({ inbox, calls, expect }) => {
      const handleNow = async () => (await inbox.handleNow?.(eventOf('now'))) ?? 'no handleNow'
      const failing = handleNow()
      ;(await calls.next()).finish({ status: 'dead', completed: ['a'], failures: [] })
      expect(await failing).toBe('failed')
      const again = handleNow()
      const second = await calls.next()
      expect(second.attempt.completed).toEqual(['a'])
      second.finish()
      expect(await again).toBe('handled')
      expect(await handleNow()).toBe('duplicate')
    },
    'handlesNow',
  )
}
