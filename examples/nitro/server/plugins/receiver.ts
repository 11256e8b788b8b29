export default defineNitroPlugin(async ({ hooks }) => {
  // The receiver opens now and not at the first delivery, to handle the events that an earlier process has left.
  await mediaReceiver().ready()
  // After SIGTERM, Nitro stops listening and lets the requests in flight be answered. Then it calls this hook.
  hooks.hook('close', async () => void (await mediaReceiver().close()))
})
