import type { InboxStats } from '../../../inbox/reading.ts'
import { CopyButton } from '../../../internal/page/elements.tsx'
import { Section } from '../../../internal/page/section.tsx'
import { counts } from './charts.tsx'
import type { PageState } from './page-state.ts'

const dayMs = 86_400_000

/** True for an empty inbox without any activity in the last day. */
export async function isUntouched({ subject, now }: PageState, stats: InboxStats): Promise<boolean> {
  const { waiting, running, retrying, deadLetters, expected = 0 } = stats
  if (subject.activity === undefined || waiting + running + retrying + deadLetters + expected > 0) return false
  if (((await subject.inbox.events?.list({ limit: 1 }))?.events.length ?? 0) > 0) return false
  const minutes = await subject.activity.read(new Date(now.getTime() - dayMs))
  return minutes.every((minute) => counts.every(([count]) => minute[count] === 0))
}

/** First steps, instead of empty charts. */
export function Start({ page: { origin, subject } }: { page: PageState }) {
  const isMediaService = (subject.sender?.name ?? 'media-service') === 'media-service'
  const [events, sample] = isMediaService
    ? ['the events of a media item', 'lifecycle --time-scale 0.1']
    : ['an event as your service sends it', '--body event.json']
  const ofProcess = subject.activity?.ofThisProcessSince !== undefined
  return (
    <Section id="start" title={`Nothing was received ${ofProcess ? 'by this process' : 'in the last day'}`}>
      <ol class="steps spaced">
        <Step command={`export MEDIA_WEBHOOKS_URL='${origin}/webhooks/media?token=…'`}>
          Set your receiver’s URL, as you register it at the service
        </Step>
        <Step command={`npx media-webhooks trigger ${sample}`}>Send it {events}</Step>
        <Step command={`npx media-webhooks doctor${isMediaService ? '' : ` ${sample}`}`}>
          Check that it rejects forged deliveries, answers fast and recognises duplicates
        </Step>
      </ol>
    </Section>
  )
}

const Step = ({ command, children }: { command: string; children?: unknown }) => (
  <li>
    {children}: <CopyButton text={command} label="the command" />
    <pre>{command}</pre>
  </li>
)
