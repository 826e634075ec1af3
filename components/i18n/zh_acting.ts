import type { ActingDict } from "./dict_acting.ts";

/** Simplified Chinese, what operators do. */
export const zhActing: ActingDict = {
  signIn: {
    title: "登录",
    provider: "通过 {host} 登录",
    token: "令牌",
    submit: "使用此令牌登录",
    out: "退出登录",
    faults: {
      token: "此令牌不在 ADMIN_TOKENS 中：请确认已完整粘贴，或向管理员索取。",
      provider: "通过 {host} 登录失败。请重试；若仍然失败，原因见日志（“sign-in refused”）。",
      role:
        "{host} 认得您是 {name}，但您所在的组在这里都没有角色：请让管理员在 OIDC_ROLE_MAP 中映射其中一个，然后重新登录。",
      slow: "来自您的地址的尝试超过 {count} 次：请等待 {seconds} 秒后再试。",
      here:
        "您已在此浏览器和此副本上退出登录。NATS 没有应答，一旦恢复就会通知其他副本。在此之前，或者如果此副本先行终止，" +
        "其他副本仍会接受会话 Cookie 的副本，最长八小时。如果有人可能持有副本：更改 ADMIN_TOKENS 或 OIDC_ROLE_MAP，" +
        "下次启动时所有会话都会结束。",
    },
  },
  acting: {
    title: "可执行的操作",
    note: "备注",
    notePlaceholder: "原因；将写入审计",
    viewer: "您可以查看所有内容；执行操作需要 operator 角色。",
    admin: "{action}：需要 admin 角色。",
    elsewhere: "此副本为备用：操作由领导者 {leader} 执行。",
    cordon: "停止接收",
    cordonText: "不再接收新作业：撤回 Gitea 上的标签，已存储的作业等待，运行中的作业继续。",
    drain: "排空",
    drainText:
      "不再接收新作业，让已存储的作业完成，并等待直到没有作业运行。超过期限不会销毁任何东西。",
    minutes: "期限（分钟）",
    minutesHint: "无",
    hold: "保留已存储的作业，而不是让其完成",
    undo: "撤销排空",
    undoText: "恢复此次排空所设置的内容：标签恢复，并立即获取作业。",
    resume: "恢复",
    resumeText: "解除停止接收与排空：标签恢复，并立即获取作业。",
    capacity: "更改容量",
    capacityText: "容量减少时运行中的作业保留其槽位；有空闲槽位之前不会启动新作业。",
    slots: "槽位",
    configuredCapacity: "恢复为配置值 {n}",
    promote: "提升为 vm",
    promoteText: "在 Gitea 声明 vm：生产作业从此进入此处。两种标签的已存储作业仍会运行。",
    demote: "退回 vm-dev",
    demoteText:
      "在 Gitea 声明 vm-dev：需要 vm 的作业在那里保持等待。两种标签的已存储作业仍会运行。",
    configuredLabel: "恢复为配置值 {label}",
    retry: "立即重试",
    cancel: "取消…",
    release: "释放…",
    stepDown: "让位",
    stepDownText: "本进程归还租约并结束；其他副本在数秒内接管。运行中的作业继续，并会被重新找到。",
    stepDownRunning: { one: "现有 {n} 个作业运行。", other: "现有 {n} 个作业运行。" },
    noElection: "没有选举时无人接管：请改为停止该进程。",
    confirm: "确认：{action}",
  },
  refused: { title: "未执行任何操作", current: "目前的状态：", back: "重新查看" },
  stranger: {
    title: "释放执行器 {name}",
    noJob: "已知其中没有我们的作业；但它仍可能正在运行一个。",
    about: { forced: "删除它。", forget: "保留它，但不再计入。用于已不存在的后端。" },
    fate: {
      forced: [
        "Gitea：不作通知；其中运行的作业在其运行器沉默后结束。",
        "槽位：后端确认执行器消失后归还。",
        "执行器：按其 UID 恰好删除这一个。",
      ],
      forget: [
        "Gitea：不作通知。",
        "槽位：立即归还，尽管执行器可能仍在运行。运行数量可能超过槽位数。",
        "执行器：保留，并仍显示在页面上。",
      ],
    },
    buttons: { forced: "删除执行器", forget: "遗忘执行器" },
  },
  release: {
    title: "释放 {job}",
    cancelTitle: "取消 {job}",
    affected: "受影响的作业",
    back: "保持不变",
    job: "作业",
    refused: "目前不可行",
    over: "此作业已无任何残留：没有可释放的内容。",
    tiers: { graceful: "温和", forced: "强制", forget: "遗忘" },
    about: {
      graceful: "取消并等待其结束。",
      forced: "立即在 Gitea 标为失败，删除执行器，释放槽位。",
      forget: "与强制相同，但不等待后端。用于已不存在的后端。",
    },
    buttons: {
      graceful: "取消作业",
      forced: "使作业失败并删除其执行器",
      forget: "遗忘执行器",
    },
    confirm: "输入 {id} 以遗忘它",
    gitea: {
      ended_already: "Gitea：作业已经结束，保持不变。",
      at_once: "Gitea：作业立即以“{result}”结束，备注写入其日志。",
      when_its_runner_has_ended: "Gitea：通知其运行器结束，清理并报告结束；2 分钟后由此处结束。",
    },
    slot: {
      none: "槽位：未占用。",
      freed_at_once: "槽位：立即归还，尽管执行器可能仍在运行。运行数量可能超过槽位数。",
      freed_when_executor_gone: "槽位：后端确认执行器消失后归还。",
      freed_when_job_ends: "槽位：作业结束后归还。",
    },
    executor: {
      none: "执行器：没有。",
      ends_by_itself: "执行器：{name} 自行结束并被删除。",
      deleted: "执行器：{name} 被删除。",
      deleted_when_possible: "执行器：后端可行时即删除 {name}。",
    },
    identity: "身份：其 SPIFFE 身份条目随执行器一同删除。",
    message: { none: "队列：已不在队列中。", removed: "队列：其消息被移除。" },
    unnamed: "正在为其创建的内容",
    changed: "如果在您按下按钮之前作业发生变化，则不执行任何操作，并显示变化。",
  },
};
