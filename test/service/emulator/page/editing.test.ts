import { expect, test } from 'vitest'
import { headerToken } from '../../../../src/index.ts'
import { describeInBrowser, openPage } from '../../../support/browser.ts'
import { emulate, receive, subscribe } from '../started-emulator.ts'
import { rows } from './steps.ts'

describeInBrowser('an edited payload', () => {
  test('is sent to the same webhook, signed as usual, and keeps its text when it is not JSON', async () => {
    const { url, events } = await receive({ verify: headerToken({ secret: 's3cret', header: 'x-token' }) })
    const emulator = await emulate()
    const { id } = await subscribe(emulator, url, ['file_received'])
    emulator.behave(id, { sign: { scheme: 'header-token', secret: 's3cret', header: 'x-token' } })
    emulator.addMedia({ title: 'Holiday.mp4' })
    await emulator.settled()
    const page = await openPage(emulator, { javaScriptEnabled: false })
    await rows(page).first().getByRole('link').click()
    const summary = page.locator('summary', { hasText: 'Edit and send again' })
    const text = page.getByRole('textbox', { name: 'Payload' })
    const send = page.getByRole('button', { name: 'Send edited payload' })

    await summary.click()
    const payload = JSON.parse(await text.inputValue())
    await text.fill('{"type": ')
    await send.click()
    await page.getByRole('alert').getByText('the payload is not JSON').waitFor()
    expect(await text.inputValue()).toBe('{"type": ')

    await text.fill(JSON.stringify({ ...payload, title: 'Edited.mp4', qualities: '8640p', extra: 1 }))
    await send.click()
    await page.getByText('The edited payload is being sent').waitFor()
    await emulator.settled()
    expect(events.map(({ title }) => title)).toEqual(['Holiday.mp4', 'Edited.mp4'])
    expect(events[1]?.payload).toMatchObject({ extra: 1 })
    expect(emulator.sendings()[0]).toMatchObject({ webhookId: id, payload: { title: 'Edited.mp4' } })

    emulator.repeat(emulator.sendings()[0]?.id ?? '')
    await emulator.settled()
    expect(emulator.sendings()[0]?.deliveries[0]?.request.body).toContain('"extra":1')
  })
})
