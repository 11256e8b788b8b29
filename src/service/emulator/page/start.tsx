import { CopyButton } from '../../../internal/page/elements.tsx'
import { Section } from '../../../internal/page/section.tsx'
import type { PageState } from './page-state.ts'

const receiver = `import { createServer } from 'node:http'
import { createReceiver, unverified } from 'media-webhooks'
import { nodeHandler } from 'media-webhooks/node'

const receiver = createReceiver({ verify: unverified() })
receiver.onAny((event) => console.log(event.type, event.title))
createServer(nodeHandler(receiver)).listen(3000, '127.0.0.1')`

/** The first steps. Disappears once all are done. */
export function Start({ page: { service } }: { page: PageState }) {
  const steps = [
    service.workspace.webhooks.list({ limit: 1 }).total > 0,
    service.studio.list().length > 0,
    service.outbox.list().some(({ state }) => state === 'acknowledged'),
  ]
  const [created, uploaded, arrived] = steps
  if (steps.every(Boolean)) return <section id="start" data-shows="webhooks media sendings" hidden />
  return (
    <Section id="start" title="Start here" shows={['webhooks', 'media', 'sendings']}>
      <ol class="steps">
        <Step done={created}>
          <a href="#webhooks">Create a webhook</a> with your receiver’s URL. If you have no receiver yet, run this one
          and enter <code>http://127.0.0.1:3000/webhooks/media</code>.
        </Step>
        <Step done={uploaded}>
          <a href="#media">Upload a media item</a>. Its events follow, as if the service encoded it.
        </Step>
        <Step done={arrived}>
          <a href="#deliveries">Watch the deliveries</a>: each request, your receiver’s answer, and the retries.
        </Step>
      </ol>
      {!created && (
        <figure>
          <figcaption>
            receiver.mjs <CopyButton text={receiver} label="the receiver" />
          </figcaption>
          <pre>{receiver}</pre>
        </figure>
      )}
    </Section>
  )
}

function Step({ done, children }: { done: boolean | undefined; children?: unknown }) {
  return (
    <li class={done ? 'done' : ''}>
      <span>
        {children}
        {done && <strong> Done.</strong>}
      </span>
    </li>
  )
}
